#include "tidemark/base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "../support/scratch_folder.h"
#include "tidemark/base/error.h"

namespace tidemark {
namespace {

using test::read_whole_file;
using test::ScratchFolder;

std::size_t count_files(const ScratchFolder& scratch) {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(scratch.folder())) ++n;
  return n;
}

TEST(AtomicFile, AppearsWithItsWholeContent) {
  const ScratchFolder scratch;
  AtomicFile file(scratch.path("a"));
  file.write("one");
  EXPECT_FALSE(std::filesystem::exists(scratch.path("a")));
  file.write("two");
  file.commit();
  EXPECT_EQ(read_whole_file(scratch.path("a")), "onetwo");
  EXPECT_EQ(count_files(scratch), 1u);
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  const ScratchFolder scratch;
  write_file_atomically(scratch.path("a"), "old");
  {
    AtomicFile file(scratch.path("a"));
    file.write("new");
  }
  EXPECT_EQ(read_whole_file(scratch.path("a")), "old");
  EXPECT_EQ(count_files(scratch), 1u);
}

TEST(AtomicFile, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const ScratchFolder scratch;
  write_file_atomically(scratch.path("a"), "old");
  // A limit on the size of files stands for a full disk.
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small {
    1000, before.rlim_max
  };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    write_file_atomically(scratch.path("a"), std::string(5000, 'x'));
  } catch (const Error& error) {
    message = error.what();
    EXPECT_EQ(error.info().kind, ErrorKind::kIo);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_NE(message.find("cannot write this file"), std::string::npos) << message;
  EXPECT_EQ(read_whole_file(scratch.path("a")), "old");
  EXPECT_EQ(count_files(scratch), 1u);
}

TEST(AtomicFile, SaysWhenTheFolderIsMissing) {
  const ScratchFolder scratch;
  EXPECT_THROW(write_file_atomically(scratch.path("none/a"), "x"), Error);
  EXPECT_THROW(write_file_atomically(scratch.folder(), "x"), Error);
}

TEST(AtomicFile, FollowsLinksAndKeepsPermissions) {
  const ScratchFolder scratch;
  write_file_atomically(scratch.path("target"), "old");
  ASSERT_EQ(::chmod(scratch.path("target").c_str(), 0640), 0);
  ASSERT_EQ(::symlink(scratch.path("target").c_str(), scratch.path("link").c_str()), 0);
  write_file_atomically(scratch.path("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link")));
  EXPECT_EQ(read_whole_file(scratch.path("target")), "new");
  struct stat info {};
  ASSERT_EQ(::stat(scratch.path("target").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(AtomicFile, RefusesALinkThatLeadsNowhereAndAnEmptyName) {
  const ScratchFolder scratch;
  ASSERT_EQ(::symlink(scratch.path("missing").c_str(), scratch.path("link").c_str()), 0);
  EXPECT_THROW(write_file_atomically(scratch.path("link"), "x"), Error);
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path("link")));
  EXPECT_THROW(write_file_atomically("", "x"), Error);
}

TEST(AtomicFile, WritesStraightToWhatIsNoFile) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_THROW(write_file_atomically("/dev/full", "x"), Error);
}

}  // namespace
}  // namespace tidemark
