#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/report/json.h"
#include "tidemark/report/text_layout.h"

namespace tidemark::cli {

using report::Json;

// The command line itself is wrong, as opposed to what it names.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Where a command's words go: results to stdout, messages to stderr, colours only to a terminal. The only part of the
// program that writes, and that looks at the environment.
class Console {
 public:
  // Reads NO_COLOR and TERM, and whether stdout and stderr are terminals.
  Console();

  bool json() const { return json_; }
  void set_json(bool json) { json_ = json; }

  // Writes a result. Throws: Error (io) when stdout does not take it.
  void print(std::string_view text) const;
  void print_json(const Json& value) const;

  // Writes to stderr; a failure is ignored, since there is nobody left to tell.
  void message(std::string_view text) const;

  // Whether somebody sees what is written to stderr at once: a terminal that knows its control codes.
  bool is_watched() const { return is_watched_; }

  // "tidemark: error: [place] ..." to stderr, on one line, whatever the input holds.
  void complain(const Error& error) const;

  // Bold headings when stdout shows colours.
  report::Style style() const { return {.is_bold = colour_out_}; }
  std::string heading(std::string_view text) const { return style().heading(text); }

 private:
  bool json_ = false;
  bool colour_out_ = false;
  bool colour_err_ = false;
  bool is_watched_ = false;
};

// The fields of an error for machines; `kind` is "usage" for a UsageError.
Json error_json(const Error& error);

}  // namespace tidemark::cli
