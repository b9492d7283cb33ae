#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "exit_code.h"
#include "planning_arguments.h"
#include "tidemark/planner/planner.h"
#include "tidemark/report/plan_files.h"
#include "tidemark/report/plan_report.h"

namespace tidemark::cli {

// How every command that ends with a plan ends.

void add_output_option(CLI::App& app, std::string& output, const std::string& help);

// Throws: UsageError when the plan or its certificate would go to a file that the command reads.
void check_output(const std::string& output, const PlanningArguments& planning);

// Checks the plan and writes it, if a file is named; the report then says so.
void finish_plan(report::PlanReport& report, const planner::PlannerOptions& options, const report::PlanOutput& output);

ExitCode exit_code_of(planner::Termination termination);

}  // namespace tidemark::cli
