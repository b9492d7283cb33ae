#include "tidemark/base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>

#include "tidemark/base/error.h"

namespace tidemark {

namespace {

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string resolve_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

// The permissions a newly made file would get. umask can only be read by setting it, which would race with other
// threads, so the temporary file is opened with the usual mode instead and the kernel applies the mask.
int open_temporary(std::string& path) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string candidate = fmt::format("{}.tmp-{}-{}", path, ::getpid(), attempt);
    const int descriptor = ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) {
      path = candidate;
      return descriptor;
    }
  }
  return -1;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : shown_path_(std::move(path)), target_path_(resolve_links(shown_path_)) {
  struct stat link {};
  const bool is_link = ::lstat(target_path_.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
  if (shown_path_.empty() || is_link) {  // realpath could not follow it
    errno = ENOENT;
    fail(is_link ? "follow the link in place of" : "write");
  }
  struct stat existing {};
  const bool exists = ::stat(target_path_.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) {
    errno = EISDIR;
    fail("write");
  }
  if (exists && !S_ISREG(existing.st_mode)) {
    descriptor_ = ::open(target_path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("open");
    return;
  }
  if (exists && ::access(target_path_.c_str(), W_OK) != 0) fail("write");
  std::string temporary = target_path_;
  descriptor_ = open_temporary(temporary);
  if (descriptor_ < 0) fail("create a file in the folder of");
  temporary_path_ = temporary;
  if (exists && ::fchmod(descriptor_, existing.st_mode & 07777) != 0) fail("set the permissions of");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

void AtomicFile::write(std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(descriptor_, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    data.remove_prefix(static_cast<std::size_t>(n));
  }
}

void AtomicFile::commit() {
  TIDEMARK_CHECK(descriptor_ >= 0, "a file is committed once");
  if (!temporary_path_.empty() && ::fsync(descriptor_) != 0) fail("flush");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close");
  if (temporary_path_.empty()) return;
  if (::rename(temporary_path_.c_str(), target_path_.c_str()) != 0) fail("replace");
  temporary_path_.clear();
  // The rename is durable once the folder is flushed; a file system that cannot do that is no reason to fail.
  const int folder = ::open(folder_of(target_path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

void AtomicFile::fail(std::string_view action) {
  const int code = errno;
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_path_.empty()) ::unlink(std::exchange(temporary_path_, {}).c_str());
  throw Error({.kind = ErrorKind::kIo,
               .place = shown_path_,
               .problem = fmt::format("cannot {} this file: {}", action, std::generic_category().message(code)),
               .expected = {},
               .got = {},
               .remedy = "check that the folder exists, is writable and has space"});
}

void write_file_atomically(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace tidemark
