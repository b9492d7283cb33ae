#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tidemark::planner {

// A mixed-integer linear program as a value: minimise the sum of cost times column over all columns within their
// bounds, such that every row's sum of terms lies within the row's.

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

struct Column {
  std::string name;  // letters, digits and _, unique
  double cost = 0;
  double lower = 0;
  double upper = kUnbounded;
  bool is_integer = false;
};

struct Term {
  std::uint32_t column = 0;
  double factor = 0;
};

struct Row {
  std::string name;
  double lower = -kUnbounded;
  double upper = kUnbounded;
  std::vector<Term> terms;  // each column at most once
};

struct LinearModel {
  std::string name;
  std::vector<Column> columns;
  std::vector<Row> rows;

  std::uint32_t add(Column column) {
    columns.push_back(std::move(column));
    return static_cast<std::uint32_t>(columns.size() - 1);
  }
};

// The two formats that every solver reads. The same text for the same model on every machine; numbers are written so
// that they read back as the same ones.
std::string mps_text(const LinearModel& model);  // free MPS
std::string lp_text(const LinearModel& model);   // CPLEX's LP format

}  // namespace tidemark::planner
