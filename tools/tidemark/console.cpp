#include "console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "text_layout.h"
#include "tidemark/step/dump.h"

namespace tidemark::cli {

namespace {

// A hostile file may put a name of 64 KiB into an error.
constexpr std::size_t kMaxErrorColumns = 1000;

bool is_terminal(int descriptor) {
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::strcmp(terminal, "dumb") == 0) return false;
  return ::isatty(descriptor) != 0;
}

bool shows_colours(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org: set and not empty
  return (no_color == nullptr || *no_color == '\0') && is_terminal(descriptor);
}

// Zero, or the error code of the write that failed.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

Console::Console()
    : colour_out_(shows_colours(STDOUT_FILENO)),
      colour_err_(shows_colours(STDERR_FILENO)),
      is_watched_(is_terminal(STDERR_FILENO)) {}

void Console::print(std::string_view text) const {
  const int code = write_all(STDOUT_FILENO, text);
  if (code == 0) return;
  throw Error({.kind = ErrorKind::kIo,
               .place = "stdout",
               .problem = fmt::format("cannot write the result: {}", std::strerror(code)),
               .expected = {},
               .got = {},
               .remedy = "check where the output goes and whether there is room"});
}

void Console::print_json(const Json& value) const {
  // Pure ASCII: safe on a terminal, and a file name that is not UTF-8 does not stop the output.
  print(value.dump(2, ' ', true, Json::error_handler_t::replace) + "\n");
}

void Console::message(std::string_view text) const { write_all(STDERR_FILENO, text); }

void Console::complain(const Error& error) const {
  const std::string_view label = colour_err_ ? "\x1b[1;31merror:\x1b[0m" : "error:";
  message(fmt::format("tidemark: {} {}\n", label, elide(step::printable(error.what()), kMaxErrorColumns)));
}

Json error_json(const Error& error) {
  const ErrorInfo& info = error.info();
  const bool is_usage = dynamic_cast<const UsageError*>(&error) != nullptr;
  return {{"kind", is_usage ? "usage" : name_of(info.kind)},
          {"place", info.place},
          {"problem", info.problem},
          {"expected", info.expected},
          {"got", info.got},
          {"remedy", info.remedy}};
}

}  // namespace tidemark::cli
