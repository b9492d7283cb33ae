#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "casters.h"
#include "tidemark/step/step.h"

// How Python sees the tables of a Step: `step.ops` is a TableView, `step.ops[3]` a Row. Both only point into the Step,
// which they keep alive; nothing is copied until a field is read.

namespace tidemark::python {

namespace nb = nanobind;

template <class Record>
struct Row {
  nb::object owner;  // the Python Step
  const step::Step* step = nullptr;
  std::uint32_t id = 0;
  const Record* record = nullptr;

  const Record* operator->() const { return record; }
  std::string_view text(step::StringId string) const { return step->text(string); }
};

struct TableView {
  nb::object owner;
  const step::Step* step = nullptr;
  std::size_t size = 0;
  nb::object (*row)(const TableView& table, std::size_t id) = nullptr;
};

// What a row of each table is in Python: a Row, unless it is simple enough for a plain value.
template <class Record>
nb::object to_python(const TableView& table, std::size_t id, const Record& record) {
  return nb::cast(Row<Record>{table.owner, table.step, static_cast<std::uint32_t>(id), &record});
}
nb::object to_python(const TableView& table, std::size_t id, const std::string& string);
nb::object to_python(const TableView& table, std::size_t id, const step::ArgList& args);
nb::object to_python(const TableView& table, std::size_t id, const step::Event& event);
nb::object to_python(const TableView& table, std::size_t id, const step::Resize& resize);

// The getter of one table of a Step.
template <auto Member>
TableView view_table(nb::handle_t<step::Step> self) {
  const step::Step& step = nb::cast<const step::Step&>(self);
  return {nb::borrow(self), &step, (step.tables().*Member).size(), [](const TableView& table, std::size_t id) {
            return to_python(table, id, (table.step->tables().*Member)[id]);
          }};
}

}  // namespace tidemark::python
