#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "console.h"

namespace tidemark::cli {

// One sentence about a command line that CLI11 refused, with the nearest thing that exists.
UsageError explain_usage(const CLI::App& root, const CLI::ParseError& error);

// The word of `candidates` that was most likely meant, or nothing: "".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tidemark::cli
