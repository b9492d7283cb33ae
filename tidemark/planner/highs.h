#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tidemark/planner/linear_model.h"

namespace tidemark::planner {

// The solver HiGHS, from its shared library as it is found at run time: nothing of it is linked, so that everything
// else works without it. One thread and a fixed seed: the same model gives the same answer.

enum class LinearEnd : std::uint8_t {
  kOptimal,
  kInfeasible,
  kLimit,  // `values`, if there are any, are feasible; `bound` holds
};

struct LinearSolution {
  LinearEnd end = LinearEnd::kLimit;
  std::vector<double> values;  // by column; empty without a solution
  double objective = 0;
  double bound = 0;  // no solution costs less, as far as doubles go
  std::int64_t nodes = 0;
};

struct HighsOptions {
  double relative_gap = 0;
  double tolerance = 1e-9;             // of rows, and of what counts as whole
  std::int64_t max_nodes = 1'000'000;  // of the search tree
};

class Highs {
 public:
  // The first of `paths` that can be loaded; a path is what dlopen takes. Throws: Error that says how to get it when
  // there is none, or naming the one whose functions or integers are not those this was written for.
  explicit Highs(const std::vector<std::string>& paths);

  const std::string& path() const;
  std::string version() const;

  LinearSolution solve(const LinearModel& model, const HighsOptions& options = {}) const;
  // Of an MPS or LP file. Throws: Error when HiGHS cannot read it.
  LinearSolution solve_file(const std::string& path, const HighsOptions& options = {}) const;

 private:
  struct Library;
  std::shared_ptr<const Library> library_;
};

// What the system's own library is called.
std::vector<std::string> system_highs();

}  // namespace tidemark::planner
