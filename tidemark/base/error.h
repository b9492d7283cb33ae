#pragma once

#include <exception>
#include <string>

namespace tidemark {

// The one exception of the library: misuse, bad input, a failed read or write. It says where, what is wrong, what was
// expected, what came instead and what to try, each as its own field, so that a tool can show them apart. What a
// solver concluded (infeasible, limit reached) is data and never an Error.
//
//   throw Error({.kind = ErrorKind::kInput, .place = "budget", .problem = "the budget has no unit",
//                .expected = "a number with a unit", .got = "\"70\"", .remedy = "write 70GiB, 80GB or 90%"});
//
// what() reads: [budget] the budget has no unit; expected a number with a unit, got "70"; try: write 70GiB, ...
enum class ErrorKind {
  kInput,     // a file, an option or an argument is wrong
  kIo,        // the operating system refused to read or write
  kLimit,     // a documented cap was exceeded
  kInternal,  // a broken promise inside the library: a defect of ours
};

struct ErrorInfo {
  ErrorKind kind = ErrorKind::kInput;
  std::string place;     // file and line, record and field, or option
  std::string problem;   // what is wrong, without a final period
  std::string expected;  // may be empty
  std::string got;       // may be empty
  std::string remedy;    // may be empty
};

class Error : public std::exception {
 public:
  explicit Error(ErrorInfo info);

  const char* what() const noexcept override { return text_.c_str(); }
  const ErrorInfo& info() const { return info_; }

 private:
  ErrorInfo info_;
  std::string text_;
};

// The name used in machine-readable output: "input", "io", "limit", "internal".
const char* name_of(ErrorKind kind);

}  // namespace tidemark

// Guards an invariant of the library itself; on in every build. `message` says what should have held.
#define TIDEMARK_CHECK(condition, message) \
  ((condition) ? static_cast<void>(0) : ::tidemark::fail_check(__FILE__, __LINE__, #condition, message))

namespace tidemark {
[[noreturn]] void fail_check(const char* file, int line, const char* condition, const std::string& message);
}
