#include "step_lines.h"

#include <algorithm>
#include <array>
#include <span>

#include "tidemark/step/dtype.h"
#include "tidemark/step/kinds.h"
#include "tidemark/step/limits.h"

namespace tidemark::test {

namespace {

enum class Type {
  kText,
  kNonEmptyText,
  kBoolean,
  kWord,   // one of a column's words
  kFlags,  // letters; only the empty word is asked for here
  kId,     // of a column's table
  kIdOrNull,
  kParent,  // null, or an id below the row's own
  kNumber32,
  kNumber26,  // below 2^26
  kNumber16,
  kSize,    // 0 to 2^63 - 1
  kSize62,  // 0 to 2^62
  kSizeOrNull,
  kIds,      // a list of ids
  kSizes,    // a list as long as its neighbour, so no value of it may be added or taken away
  kAliases,  // a list of words
};

struct Column {
  Type type;
  Table target = Table::kMeta;
  std::span<const std::string_view> words = {};
};

// The columns of every table but strings, args and events, whose rows are no plain lists of columns.
std::span<const Column> columns_of(Table table) {
  using enum Type;
  using enum Table;
  static const std::vector<std::vector<Column>> kColumns = {
      {{kNonEmptyText}, {kText}},                                                                     // meta
      {},                                                                                             // strings
      {{kParent}, {kId, kStrings}, {kId, kStrings}},                                                  // modules
      {{kWord, kMeta, step::kPassKindNames}, {kNumber26}, {kNumber26}, {kNumber32}},                  // passes
      {{kId, kModules}, {kParent}, {kNumber32}, {kId, kPasses}, {kIds, kTensors}, {kIds, kTensors}},  // calls
      {{kId, kStrings}, {kNumber32}, {kId, kStrings}},                                                // sources
      {{kWord}, {kSizes}, {kSizes}},                                                                  // layouts
      {{kSize}, {kId, kStrings}, {kWord, kMeta, step::kRoleNames}, {kIdOrNull, kStorages}},           // storages
      {{kId, kStorages}, {kNumber32}, {kId, kLayouts}, {kSize}, {kBoolean}},                          // tensors
      {{kId, kModules}, {kId, kStrings}, {kId, kTensors}, {kWord, kMeta, step::kBindingKindNames}, {kBoolean}},
      {{kId, kStrings}, {kSize}, {kId, kPasses}},  // nodes
      {},                                          // args
      {{kWord, kMeta, step::kRegionKindNames}, {kParent}, {kIdOrNull, kCalls}, {kIdOrNull, kArgs}, {kIds, kTensors}},
      {{kId, kStrings},
       {kId, kPasses},
       {kIdOrNull, kCalls},
       {kIdOrNull, kNodes},
       {kIdOrNull, kRegions},
       {kIds, kTensors},
       {kIds, kTensors},
       {kAliases},
       {kIdOrNull, kArgs},
       {kSizeOrNull},
       {kSizeOrNull},
       {kSizeOrNull},
       {kFlags},
       {kIdOrNull, kStrings},
       {kNumber16},
       {kIdOrNull, kSources}},                                    // ops
      {{kId, kNodes}, {kNumber32}, {kId, kTensors}, {kBoolean}},  // saves
      {{kId, kStrings}, {kId, kStrings}, {kIdOrNull, kOps}},      // notes
      {},                                                         // events
  };
  return kColumns[static_cast<std::size_t>(table)];
}

Table target_of(step::EventKind kind) {
  using enum step::EventKind;
  switch (kind) {
    case kPhase:
      return Table::kPasses;
    case kEnter:
    case kExit:
      return Table::kCalls;
    case kBegin:
    case kEnd:
      return Table::kOps;
    case kAlloc:
    case kFree:
    case kResize:
      return Table::kStorages;
    case kNode:
    case kDone:
      return Table::kNodes;
    default:
      return Table::kSaves;
  }
}

std::optional<step::EventKind> event_kind(const Json& row) {
  if (!row.is_array() || row.size() < 2 || !row[0].is_string()) return std::nullopt;
  return step::from_name<step::EventKind>(row[0].get<std::string>(), step::kEventKindNames);
}

// Whole numbers from 0 to `most`. A float never is one, nor is a number beyond 2^63.
bool is_number(const Json& value, std::uint64_t most) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>() <= most;
  return value.is_number_integer() && value.get<std::int64_t>() >= 0;
}

constexpr std::uint64_t kMost63 = (std::uint64_t{1} << 63) - 1;

bool is_id(const Json& value, std::uint64_t count) { return count > 0 && is_number(value, count - 1); }

bool is_word(const Json& value, std::span<const std::string_view> words) {
  return value.is_string() && std::find(words.begin(), words.end(), value.get<std::string>()) != words.end();
}

bool is_alias(const Json& value) {
  if (!value.is_string()) return false;
  const auto word = value.get<std::string>();
  return word == "fresh" || word == "existing" || word.starts_with("view:") || word.starts_with("mutates:");
}

template <class Test>
bool is_list_of(const Json& value, const Test& test) {
  return value.is_array() && std::all_of(value.begin(), value.end(), test);
}

bool fits_column(const Json& value, const Column& column, std::uint64_t count, std::uint64_t own_id) {
  const auto id = [&](const Json& v) { return is_id(v, count); };
  const auto size = [](const Json& v) { return is_number(v, kMost63); };
  switch (column.type) {
    case Type::kText:
      return value.is_string();
    case Type::kNonEmptyText:
      return value.is_string() && value != "";
    case Type::kBoolean:
      return value.is_boolean();
    case Type::kWord:
      if (column.words.empty()) return value.is_string() && step::dtype_from_name(value.get<std::string>());
      return is_word(value, column.words);
    case Type::kFlags:
      return value.is_string() && value != "x";
    case Type::kId:
      return id(value);
    case Type::kIdOrNull:
      return value.is_null() || id(value);
    case Type::kParent:
      return value.is_null() || is_id(value, own_id);
    case Type::kNumber32:
      return is_number(value, 0xFFFFFFFF);
    case Type::kNumber26:
      return is_number(value, (1 << 26) - 1);
    case Type::kNumber16:
      return is_number(value, 0xFFFF);
    case Type::kSize:
      return size(value);
    case Type::kSize62:
      return is_number(value, std::uint64_t{1} << 62);
    case Type::kSizeOrNull:
      return value.is_null() || size(value);
    case Type::kIds:
      return is_list_of(value, id);
    case Type::kSizes:
      return is_list_of(value, size);
    case Type::kAliases:
      return is_list_of(value, is_alias);
  }
  return false;
}

bool fits_arg_value(const Json& value, std::uint64_t strings) {
  if (value.is_string()) return false;
  if (value.is_number_unsigned()) return is_number(value, kMost63);
  if (value.is_array())
    return std::all_of(value.begin(), value.end(), [&](const Json& v) { return fits_arg_value(v, strings); });
  if (!value.is_object()) return true;
  if (value.size() != 1) return false;
  const Json& content = value.front();
  if (value.contains("string")) return is_id(content, strings);
  if (value.contains("float")) return content == "inf" || content == "-inf" || content == "nan";
  return value.contains("inputs") && content.size() == 2 &&
         is_list_of(content, [](const Json& v) { return is_number(v, 0xFFFFFFFF); }) && content[0] <= content[1];
}

bool fits_arg(const Json& arg, std::uint64_t strings) {
  return arg.is_array() && arg.size() == 2 && is_id(arg[0], strings) && fits_arg_value(arg[1], strings);
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<Json> parse(const std::string& line) {
  Json value = Json::parse(line, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

}  // namespace

StepLines::StepLines(std::string_view text)
    : lines_(split(text)), counts_(step::kTableNames.size()), first_numbers_(step::kTableNames.size()) {
  Line current;
  for (std::size_t number = 1; number <= lines_.size(); ++number) {
    const auto value = parse(lines_[number - 1]);
    if (number > 1 && value && value->is_object() && value->contains("section")) {
      const auto name = (*value)["section"].get<std::string>();
      const auto table = step::from_name<Table>(name, step::kTableNames);
      current = {table ? Line::Kind::kHeader : Line::Kind::kOptionalHeader, table.value_or(Table::kMeta), 0, number, 0};
      if (table) first_numbers_[static_cast<std::size_t>(*table)] = number + 1;
    } else if (number > 1) {
      const bool is_first = current.kind == Line::Kind::kHeader || current.kind == Line::Kind::kOptionalHeader;
      const bool optional = current.kind == Line::Kind::kOptionalHeader || current.kind == Line::Kind::kOptionalRow;
      current.id = is_first ? 0 : current.id + 1;
      current.kind = optional ? Line::Kind::kOptionalRow : Line::Kind::kRow;
      if (!optional) ++counts_[static_cast<std::size_t>(current.table)];
    }
    kinds_.push_back(current);
  }
  for (std::size_t i = kinds_.size(); i-- > 0;)
    kinds_[i].last = i + 1 < kinds_.size() && kinds_[i + 1].header == kinds_[i].header ? kinds_[i + 1].last : i + 1;
}

std::string StepLines::whole() const {
  std::string all;
  for (const std::string& line : lines_) all += line + '\n';
  return all;
}

bool StepLines::fits_types(std::size_t number, const Json& row) const {
  const Line& place = line(number);
  if (place.table == Table::kStrings) return row.is_string();
  if (place.table == Table::kArgs)
    return is_list_of(row, [&](const Json& arg) { return fits_arg(arg, count(Table::kStrings)); });
  if (place.table == Table::kEvents) {
    const auto kind = event_kind(row);
    if (!kind || row.size() != (kind == step::EventKind::kResize ? 3u : 2u)) return false;
    return is_id(row[1], count(target_of(*kind))) && (row.size() == 2 || is_number(row[2], std::uint64_t{1} << 62));
  }
  const auto columns = columns_of(place.table);
  if (!row.is_array() || row.size() != columns.size()) return false;
  if (place.table == Table::kLayouts && row[1].size() != row[2].size()) return false;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (!fits_column(row[i], columns[i], count(columns[i].target), place.id)) return false;
  return true;
}

std::optional<Json> StepLines::row(Table table, std::uint64_t id) const {
  if (id >= count(table)) return std::nullopt;
  return parse(lines_[first_numbers_[static_cast<std::size_t>(table)] + id - 1]);
}

std::set<Record> StepLines::subjects(std::size_t number) const {
  std::set<Record> all;
  const Line& place = line(number);
  if (place.kind == Line::Kind::kRow) add_subjects(place.table, place.id, all);
  return all;
}

void StepLines::add_subjects(Table table, std::uint64_t id, std::set<Record>& all) const {
  const auto content = row(table, id);
  if (!content) return;
  if (table != Table::kEvents) {
    if (!all.emplace(table, id).second) return;
    return add_references(table, *content, all);
  }
  const auto kind = event_kind(*content);
  if (!kind || !is_id((*content)[1], count(target_of(*kind)))) return;
  add_subjects(target_of(*kind), (*content)[1].get<std::uint64_t>(), all);
}

void StepLines::add_references(Table table, const Json& row, std::set<Record>& all) const {
  if (table == Table::kArgs) {
    for (const Json& arg : row)
      if (arg.is_array() && !arg.empty() && is_id(arg[0], count(Table::kStrings)))
        all.emplace(Table::kStrings, arg[0].get<std::uint64_t>());
    return;
  }
  const auto columns = columns_of(table);
  if (!row.is_array() || row.size() != columns.size()) return;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Table target = columns[i].type == Type::kParent ? table : columns[i].target;
    const auto add = [&](const Json& value) {
      if (!is_id(value, count(target))) return;
      const auto id = value.get<std::uint64_t>();
      // Tensors stand for their storages; what other rows refer to is not followed further.
      if (target == Table::kTensors)
        add_subjects(target, id, all);
      else
        all.emplace(target, id);
    };
    if (columns[i].type == Type::kIds && row[i].is_array())
      std::for_each(row[i].begin(), row[i].end(), add);
    else if (columns[i].type == Type::kId || columns[i].type == Type::kIdOrNull || columns[i].type == Type::kParent)
      add(row[i]);
  }
}

}  // namespace tidemark::test
