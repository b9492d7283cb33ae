#include "tidemark/base/error.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace tidemark {

namespace {

std::string describe(const ErrorInfo& info) {
  std::string text;
  if (!info.place.empty()) text += fmt::format("[{}] ", info.place);
  text += info.problem;
  if (!info.expected.empty()) text += fmt::format("; expected {}", info.expected);
  if (!info.got.empty()) text += fmt::format("{} got {}", info.expected.empty() ? ";" : ",", info.got);
  if (!info.remedy.empty()) text += fmt::format("; try: {}", info.remedy);
  return text;
}

}  // namespace

Error::Error(ErrorInfo info) : info_(std::move(info)), text_(describe(info_)) {}

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput:
      return "input";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kLimit:
      return "limit";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  const std::string_view path = file;
  const auto slash = path.find_last_of('/');
  throw Error({.kind = ErrorKind::kInternal,
               .place = fmt::format("{}:{}", slash == path.npos ? path : path.substr(slash + 1), line),
               .problem = fmt::format("{} ({} is false)", message, condition),
               .expected = {},
               .got = {},
               .remedy = "please report this with the command and the input"});
}

}  // namespace tidemark
