#include "tidemark/planner/linear_model.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace tidemark::planner {

namespace {

struct Side {
  char kind;  // of MPS: E, L or G
  double bound;
  std::string name;
};

// A row within two bounds is written as two rows; one without any is left out.
std::vector<Side> sides_of(const Row& row) {
  if (row.lower == row.upper) return {{'E', row.lower, row.name}};
  std::vector<Side> sides;
  if (row.upper != kUnbounded) sides.push_back({'L', row.upper, row.name});
  if (row.lower != -kUnbounded) sides.push_back({'G', row.lower, sides.empty() ? row.name : row.name + "_low"});
  return sides;
}

std::string terms_text(const std::vector<Term>& terms, const LinearModel& model) {
  constexpr int kPerLine = 8;
  std::string text;
  int count = 0;
  for (const Term& term : terms) {
    if (count++ % kPerLine == 0 && count > 1) text += "\n   ";
    text += fmt::format(" {} {} {}", std::signbit(term.factor) ? '-' : '+', std::abs(term.factor),
                        model.columns[term.column].name);
  }
  return text;
}

}  // namespace

std::string mps_text(const LinearModel& model) {
  std::string text = fmt::format("NAME {}\nROWS\n N cost\n", model.name);
  auto out = std::back_inserter(text);
  struct Entry {
    std::string row;
    double factor;
  };
  std::vector<std::vector<Entry>> entries(model.columns.size());
  for (const Row& row : model.rows)
    for (const Side& side : sides_of(row)) {
      fmt::format_to(out, " {} {}\n", side.kind, side.name);
      for (const Term& term : row.terms) entries[term.column].push_back({side.name, term.factor});
    }
  text += "COLUMNS\n";
  bool is_marked = false;
  int markers = 0;
  const auto mark = [&](bool is_integer) {
    if (is_integer == is_marked) return;
    fmt::format_to(out, " M{} 'MARKER' '{}'\n", markers++, is_integer ? "INTORG" : "INTEND");
    is_marked = is_integer;
  };
  for (std::size_t i = 0; i < model.columns.size(); ++i) {
    const Column& column = model.columns[i];
    mark(column.is_integer);
    fmt::format_to(out, " {} cost {}\n", column.name, column.cost);
    for (const Entry& entry : entries[i]) fmt::format_to(out, " {} {} {}\n", column.name, entry.row, entry.factor);
  }
  mark(false);
  text += "RHS\n";
  for (const Row& row : model.rows)
    for (const Side& side : sides_of(row))
      if (side.bound != 0) fmt::format_to(out, " RHS {} {}\n", side.name, side.bound);
  text += "BOUNDS\n";
  for (const Column& column : model.columns) {
    if (column.lower == -kUnbounded && column.upper == kUnbounded) {
      fmt::format_to(out, " FR B {}\n", column.name);
      continue;
    }
    if (column.lower == -kUnbounded)
      fmt::format_to(out, " MI B {}\n", column.name);
    else
      fmt::format_to(out, " LO B {} {}\n", column.name, column.lower);
    if (column.upper == kUnbounded)
      fmt::format_to(out, " PL B {}\n", column.name);
    else
      fmt::format_to(out, " UP B {} {}\n", column.name, column.upper);
  }
  return text + "ENDATA\n";
}

std::string lp_text(const LinearModel& model) {
  std::string text = fmt::format("\\ {}\nMinimize\n cost:", model.name);
  auto out = std::back_inserter(text);
  std::vector<Term> costs;  // of all columns, so that each is known
  for (std::uint32_t i = 0; i < model.columns.size(); ++i) costs.push_back({i, model.columns[i].cost});
  text += terms_text(costs, model) + "\nSubject To\n";
  for (const Row& row : model.rows)
    for (const Side& side : sides_of(row))
      fmt::format_to(out, " {}:{} {} {}\n", side.name, terms_text(row.terms, model),
                     side.kind == 'E'   ? "="
                     : side.kind == 'L' ? "<="
                                        : ">=",
                     side.bound);
  text += "Bounds\n";
  const auto bound = [](double value) {
    return value == kUnbounded ? "+inf" : value == -kUnbounded ? "-inf" : fmt::format("{}", value);
  };
  std::string integers;
  for (const Column& column : model.columns) {
    fmt::format_to(out, " {} <= {} <= {}\n", bound(column.lower), column.name, bound(column.upper));
    if (column.is_integer) integers += fmt::format(" {}\n", column.name);
  }
  if (!integers.empty()) text += "General\n" + integers;
  return text + "End\n";
}

}  // namespace tidemark::planner
