#pragma once

namespace tidemark::cli {

// How a command ended, for scripts. docs/cli.md has the same table, and a test compares the two. Commands return one
// of these; what is thrown instead is turned into one by run_safely() in main.cpp and nowhere else.
enum class ExitCode : int {
  kOk = 0,          // the command did what was asked
  kError = 1,       // bad input, or a failed read or write
  kUsage = 2,       // the command line itself is wrong
  kInfeasible = 3,  // planning: no plan fits the budget
  kLimit = 4,       // planning: a limit was reached, or the method ended, before any plan was found
};

}  // namespace tidemark::cli
