// Changes step files in ways that keep most of their structure: rows, ids and events change, counts follow. Random
// bytes alone would hardly ever get past the reader to the rules about rows and events.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "random.h"
#include "tidemark/base/byte_source.h"
#include "tidemark/base/error.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

// Rows are views into the input or into `texts`: most of them stay as they are, and copying them all would take as
// long as reading them.
struct Section {
  std::string header;  // as it stood
  std::string name;
  std::vector<std::string_view> rows;
  bool keep_header = false;  // its count is wrong on purpose
};

struct File {
  std::string_view first_line;
  std::vector<Section> sections;
  std::deque<std::string> texts;  // of changed rows

  std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }

  Section* find(std::string_view name) {
    for (Section& section : sections)
      if (section.name == name) return &section;
    return nullptr;
  }
};

// --- Text to sections and back. Anything goes: what does not look like a header is a row.

std::string name_in_header(std::string_view line) {
  constexpr std::string_view kStart = R"({"section":")";
  if (!line.starts_with(kStart)) return {};
  line.remove_prefix(kStart.size());
  return std::string(line.substr(0, line.find('"')));
}

std::optional<File> split(std::string_view text) {
  File file;
  for (std::size_t number = 0; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string name = name_in_header(line);
    if (number == 0)
      file.first_line = line;
    else if (!name.empty())
      file.sections.push_back({std::string(line), name, {}});
    else if (!file.sections.empty())
      file.sections.back().rows.push_back(line);
    else
      return std::nullopt;
  }
  if (file.sections.empty()) return std::nullopt;
  return file;
}

void append_header(const Section& section, std::string& text) {
  if (section.keep_header) {
    text += section.header;
    return;
  }
  text += R"({"section":")" + section.name + R"(","count":)" + std::to_string(section.rows.size());
  if (section.header.find(R"("optional":true)") != std::string::npos) text += R"(,"optional":true)";
  text += '}';
}

std::string join(const File& file) {
  std::string text(file.first_line);
  text += '\n';
  for (const Section& section : file.sections) {
    append_header(section, text);
    text += '\n';
    for (const std::string_view row : section.rows) {
      text += row;
      text += '\n';
    }
  }
  return text;
}

// --- The scalars of a row, and what they may refer to.

struct Scalar {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t column = 0;  // of the row
};

bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

std::size_t end_of_string(std::string_view row, std::size_t begin) {
  std::size_t i = begin + 1;
  while (i < row.size() && row[i] != '"') i += row[i] == '\\' ? 2 : 1;
  return std::min(i + 1, row.size());
}

std::vector<Scalar> scalars_of(std::string_view row) {
  std::vector<Scalar> scalars;
  std::size_t depth = 0;
  std::size_t column = 0;
  for (std::size_t i = 0; i < row.size();) {
    const char c = row[i];
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c == ',' && depth == 1) ++column;
    std::size_t end = i + 1;
    if (c == '"') end = end_of_string(row, i);
    if (is_word_byte(c))
      while (end < row.size() && is_word_byte(row[end])) ++end;
    if (c == '"' || is_word_byte(c)) scalars.push_back({i, end, column});
    i = end;
  }
  return scalars;
}

constexpr std::string_view kNumber = "#";

// For each column, the table whose ids stand there, or "#" for a number, or "" for a word or list of words.
struct Columns {
  std::string_view section;
  std::array<std::string_view, 16> targets;
};
constexpr std::array<Columns, 14> kColumns = {{
    {"modules", {"modules", "strings", "strings"}},
    {"passes", {"", kNumber, kNumber, kNumber}},
    {"calls", {"modules", "calls", kNumber, "passes", "tensors", "tensors"}},
    {"sources", {"strings", kNumber, "strings"}},
    {"layouts", {"", kNumber, kNumber}},
    {"storages", {kNumber, "strings", "", "storages"}},
    {"tensors", {"storages", kNumber, "layouts", kNumber, ""}},
    {"bindings", {"modules", "strings", "tensors", "", ""}},
    {"nodes", {"strings", kNumber, "passes"}},
    {"args", {kNumber, kNumber}},
    {"regions", {"", "regions", "calls", "args", "tensors"}},
    {"ops",
     {"strings", "passes", "calls", "nodes", "regions", "tensors", "tensors", "", "args", kNumber, kNumber, kNumber, "",
      "strings", kNumber, "sources"}},
    {"saves", {"nodes", kNumber, "tensors", ""}},
    {"notes", {"strings", "strings", "ops"}},
}};

struct EventWord {
  std::string_view kind;
  std::string_view target;
};
constexpr std::array<EventWord, 14> kEventWords = {{{"phase", "passes"},
                                                    {"enter", "calls"},
                                                    {"exit", "calls"},
                                                    {"begin", "ops"},
                                                    {"end", "ops"},
                                                    {"alloc", "storages"},
                                                    {"free", "storages"},
                                                    {"resize", "storages"},
                                                    {"pack", "saves"},
                                                    {"unpack", "saves"},
                                                    {"drop", "saves"},
                                                    {"release", "saves"},
                                                    {"node", "nodes"},
                                                    {"done", "nodes"}}};

constexpr auto kWords = std::to_array<std::string_view>({R"("forward")",
                                                         R"("loss")",
                                                         R"("backward")",
                                                         R"("recompute")",
                                                         R"("optimizer")",
                                                         R"("autocast")",
                                                         R"("no_grad")",
                                                         R"("fsdp")",
                                                         R"("parameter")",
                                                         R"("buffer")",
                                                         R"("input")",
                                                         R"("gradient")",
                                                         R"("plain")",
                                                         R"("fresh")",
                                                         R"("optimizer_state")",
                                                         R"("existing")",
                                                         R"("view:0")",
                                                         R"("view:1")",
                                                         R"("mutates:0")",
                                                         R"("mutates:1")",
                                                         R"("r")",
                                                         R"("c")",
                                                         R"("rcedmohtu")",
                                                         R"("u")",
                                                         R"("")",
                                                         R"("float32")",
                                                         R"("int8")",
                                                         R"("bool")",
                                                         R"("complex128")",
                                                         R"("a.b")",
                                                         R"("\u0000")",
                                                         "true",
                                                         "false",
                                                         "null",
                                                         "[]",
                                                         "{}",
                                                         R"({"string":0})",
                                                         R"({"inputs":[0,1]})",
                                                         R"({"float":"nan"})",
                                                         R"({"float":"-inf"})",
                                                         "1.5",
                                                         "-0.0"});

constexpr auto kNumbers = std::to_array<std::string_view>({"0",
                                                           "1",
                                                           "2",
                                                           "3",
                                                           "4",
                                                           "7",
                                                           "8",
                                                           "32",
                                                           "63",
                                                           "64",
                                                           "65",
                                                           "511",
                                                           "512",
                                                           "-1",
                                                           "65535",
                                                           "65536",
                                                           "67108864",
                                                           "268435456",
                                                           "2147483648",
                                                           "4294967294",
                                                           "4294967295",
                                                           "4294967296",
                                                           "9007199254740992",
                                                           "4611686018427387904",
                                                           "4611686018427387905",
                                                           "9223372036854775807",
                                                           "9223372036854775808",
                                                           "18446744073709551616",
                                                           "1e400",
                                                           "-0"});

// --- The mutations. Each returns whether it found something to change.

class Mutator {
 public:
  Mutator(File& file, Random& random) : file_(file), random_(random) {}

  void run() {
    for (std::size_t n = 1 + random_.below(3); n > 0; --n)
      for (int tries = 0; tries < 4 && !change(); ++tries) {
      }
  }

 private:
  bool change() {
    switch (random_.below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return change_scalar();
      case 4:
        return swap_scalars();
      case 5:
        return copy_scalar();
      case 6:
        return change_list();
      case 7:
        return remove_row();
      case 8:
        return copy_row();
      case 9:
        return swap_rows();
      case 10:
      case 11:
        return move_event();
      case 12:
        return change_event_kind();
      case 13:
      case 14:
        return insert_event();
      case 15:
        return insert_event_pair();
      case 16:
        return clone_op();
      case 17:
        return add_storage();
      case 18:
        return random_.one_in(4) && change_header();
      default:
        return change_bytes_of_row();
    }
  }

  // Events are the longest table, so sections get the same chance, not rows.
  Section* pick_section() {
    for (int tries = 0; tries < 8; ++tries) {
      Section& section = file_.sections[random_.below(file_.sections.size())];
      if (!section.rows.empty()) return &section;
    }
    return nullptr;
  }

  std::size_t count(std::string_view table) {
    const Section* section = file_.find(table);
    return section == nullptr ? 0 : section->rows.size();
  }

  std::string random_id(std::string_view table) {
    const std::size_t rows = count(table);
    if (random_.one_in(12)) return "null";
    if (random_.one_in(12)) return std::to_string(rows);
    return std::to_string(random_.below(rows));
  }

  std::string_view target_of(const Section& section, std::string_view row, std::size_t column) {
    if (section.name == "events") {
      for (const EventWord& word : kEventWords)
        if (column == 1 && row.find(word.kind) == 2) return word.target;
      return column == 0 ? std::string_view() : kNumber;
    }
    for (const Columns& columns : kColumns)
      if (columns.section == section.name) return column < columns.targets.size() ? columns.targets[column] : kNumber;
    return {};
  }

  static void replace(std::string& row, const Scalar& at, std::string_view value) {
    row.replace(at.begin, at.end - at.begin, value);
  }

  static std::string near(std::string_view number, bool up) {
    const std::string text(number);
    const long long value = std::strtoll(text.c_str(), nullptr, 10);
    if (value > (1ll << 62) || value < -(1ll << 62)) return text;
    return std::to_string(up ? value + 1 : value - 1);
  }

  // Gives a random row of the section to `edit`, which says whether it changed it.
  template <class Edit>
  bool edit_row(Section* section, const Edit& edit) {
    if (section == nullptr || section->rows.empty()) return false;
    std::string_view& place = section->rows[random_.below(section->rows.size())];
    std::string row(place);
    const std::vector<Scalar> scalars = scalars_of(row);
    if (scalars.empty() || !edit(row, scalars)) return false;
    place = file_.keep(std::move(row));
    return true;
  }

  bool change_scalar() {
    Section* section = pick_section();
    return edit_row(section, [&](std::string& row, const std::vector<Scalar>& scalars) {
      const Scalar at = random_.pick(scalars);
      const std::string_view target = target_of(*section, row, at.column);
      const std::string old = row.substr(at.begin, at.end - at.begin);
      replace(row, at, new_value(old, target));
      return true;
    });
  }

  std::string new_value(const std::string& old, std::string_view target) {
    if (random_.one_in(6)) return std::string(random_.pick(kNumbers));
    if (target.empty() || random_.one_in(6)) return std::string(random_.pick(kWords));
    if (random_.one_in(3)) return near(old, random_.one_in(2));
    if (target == kNumber) return std::string(random_.pick(kNumbers));
    return random_id(target);
  }

  bool swap_scalars() {
    return edit_row(pick_section(), [&](std::string& row, const std::vector<Scalar>& scalars) {
      Scalar a = random_.pick(scalars);
      Scalar b = random_.pick(scalars);
      if (a.begin == b.begin) return false;
      if (a.begin > b.begin) std::swap(a, b);
      const std::string first = row.substr(a.begin, a.end - a.begin);
      const std::string second = row.substr(b.begin, b.end - b.begin);
      replace(row, b, first);
      replace(row, a, second);
      return true;
    });
  }

  // The same column of another row of the section.
  bool copy_scalar() {
    Section* section = pick_section();
    return edit_row(section, [&](std::string& row, const std::vector<Scalar>& scalars) {
      const std::string_view other = random_.pick(section->rows);
      const Scalar at = random_.pick(scalars);
      for (const Scalar& from : scalars_of(other)) {
        if (from.column != at.column) continue;
        replace(row, at, other.substr(from.begin, from.end - from.begin));
        return true;
      }
      return false;
    });
  }

  // Adds or removes one scalar, with its comma.
  bool change_list() {
    return edit_row(pick_section(), [&](std::string& row, const std::vector<Scalar>& scalars) {
      const std::size_t empty = row.find("[]");
      const Scalar at = random_.pick(scalars);
      if (empty != std::string::npos && random_.one_in(3)) {
        row.insert(empty + 1, random_.one_in(2) ? random_.pick(kWords) : random_.pick(kNumbers));
      } else if (random_.one_in(2)) {
        row.insert(at.end, "," + row.substr(at.begin, at.end - at.begin));
      } else {
        const bool comma = at.end < row.size() && row[at.end] == ',';
        row.erase(at.begin, at.end - at.begin + (comma ? 1 : 0));
      }
      return true;
    });
  }

  bool remove_row() {
    Section* section = pick_section();
    if (section == nullptr) return false;
    section->rows.erase(section->rows.begin() + static_cast<std::ptrdiff_t>(random_.below(section->rows.size())));
    return true;
  }

  bool copy_row() {
    Section* section = pick_section();
    if (section == nullptr) return false;
    const std::string_view row = random_.pick(section->rows);
    insert_at(section->rows, random_.one_in(2) ? section->rows.size() : random_.below(section->rows.size()), row);
    return true;
  }

  static void insert_at(std::vector<std::string_view>& rows, std::size_t position, std::string_view row) {
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(std::min(position, rows.size())), row);
  }

  bool swap_rows() {
    Section* section = pick_section();
    if (section == nullptr) return false;
    const std::size_t a = random_.below(section->rows.size());
    const std::size_t b =
        random_.one_in(2) ? std::min(a + 1, section->rows.size() - 1) : random_.below(section->rows.size());
    std::swap(section->rows[a], section->rows[b]);
    return a != b;
  }

  bool move_event() {
    Section* events = file_.find("events");
    if (events == nullptr || events->rows.size() < 2) return false;
    const std::size_t from = random_.below(events->rows.size());
    const std::string_view row = events->rows[from];
    events->rows.erase(events->rows.begin() + static_cast<std::ptrdiff_t>(from));
    insert_at(events->rows, random_.below(events->rows.size() + 1), row);
    return true;
  }

  bool change_event_kind() {
    return edit_row(file_.find("events"), [&](std::string& row, const std::vector<Scalar>& scalars) {
      replace(row, scalars.front(), '"' + std::string(random_.pick(kEventWords).kind) + '"');
      return true;
    });
  }

  std::string_view event(std::string_view kind, const std::string& id) {
    std::string row = "[\"" + std::string(kind) + "\"," + id;
    if (kind == "resize") row += "," + std::string(random_.pick(kNumbers));
    return file_.keep(row + "]");
  }

  bool insert_event() {
    Section* events = file_.find("events");
    if (events == nullptr) return false;
    const EventWord& word = random_.pick(kEventWords);
    insert_at(events->rows, random_.below(events->rows.size() + 1), event(word.kind, random_id(word.target)));
    return true;
  }

  // Two events that belong together, for one row, at two places.
  bool insert_event_pair() {
    struct Pair {
      std::string_view first, second, target;
    };
    constexpr auto kPairs = std::to_array<Pair>({{"begin", "end", "ops"},
                                                 {"enter", "exit", "calls"},
                                                 {"alloc", "free", "storages"},
                                                 {"pack", "release", "saves"},
                                                 {"unpack", "drop", "saves"},
                                                 {"node", "done", "nodes"}});
    Section* events = file_.find("events");
    if (events == nullptr) return false;
    const Pair& pair = random_.pick(kPairs);
    const std::string id = random_id(pair.target);
    const std::size_t first = random_.below(events->rows.size() + 1);
    const std::size_t gap = random_.one_in(2) ? 0 : random_.below(events->rows.size() - first + 1);
    insert_at(events->rows, first, event(pair.first, id));
    insert_at(events->rows, first + 1 + gap, event(pair.second, id));
    return true;
  }

  // One more op like an old one, run after it: valid when the old one allocates nothing.
  bool clone_op() {
    Section* ops = file_.find("ops");
    Section* events = file_.find("events");
    if (ops == nullptr || events == nullptr || ops->rows.empty()) return false;
    const std::size_t old = random_.below(ops->rows.size());
    const auto end = std::find(events->rows.begin(), events->rows.end(), event("end", std::to_string(old)));
    if (end == events->rows.end()) return false;
    const auto position = static_cast<std::size_t>(end - events->rows.begin());
    const std::string id = std::to_string(ops->rows.size());
    ops->rows.push_back(ops->rows[old]);
    insert_at(events->rows, position + 1, event("end", id));
    insert_at(events->rows, position + 1, event("begin", id));
    return true;
  }

  // One more storage and a tensor in it, like old ones, with an alloc somewhere.
  bool add_storage() {
    Section* storages = file_.find("storages");
    Section* tensors = file_.find("tensors");
    Section* events = file_.find("events");
    if (storages == nullptr || tensors == nullptr || events == nullptr) return false;
    if (storages->rows.empty() || tensors->rows.empty()) return false;
    const std::string id = std::to_string(storages->rows.size());
    storages->rows.push_back(random_.pick(storages->rows));
    std::string tensor(random_.pick(tensors->rows));
    const std::vector<Scalar> scalars = scalars_of(tensor);
    if (!scalars.empty()) replace(tensor, scalars.front(), id);
    tensors->rows.push_back(file_.keep(std::move(tensor)));
    if (random_.one_in(2)) insert_at(events->rows, random_.below(events->rows.size() + 1), event("alloc", id));
    return true;
  }

  bool change_header() {
    switch (random_.below(4)) {
      case 0: {  // a wrong count
        Section& section = file_.sections[random_.below(file_.sections.size())];
        section.header = R"({"section":")" + section.name + R"(","count":)" + std::string(random_.pick(kNumbers)) + "}";
        section.keep_header = true;
        return true;
      }
      case 1:
        std::swap(file_.sections[random_.below(file_.sections.size())],
                  file_.sections[random_.below(file_.sections.size())]);
        return true;
      case 2: {
        Section extra{R"({"section":"x","optional":true})", random_.one_in(2) ? "x" : "x-y", {"[1]", "{}"}};
        file_.sections.insert(file_.sections.end() - 1, extra);
        return true;
      }
      default: {
        Section& section = file_.sections[random_.below(file_.sections.size())];
        section.keep_header = true;
        mutate_bytes(section.header);
        return true;
      }
    }
  }

  bool change_bytes_of_row() {
    return edit_row(pick_section(), [&](std::string& row, const std::vector<Scalar>&) {
      mutate_bytes(row);
      return true;
    });
  }

  static void mutate_bytes(std::string& text) {
    const std::size_t size = text.size();
    text.resize(size + 16);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
  }

  File& file_;
  Random& random_;
};

// --- Compressed inputs are changed inside, so that what comes out is a whole frame again.

bool is_zstd(std::string_view data) { return data.starts_with("\x28\xB5\x2F\xFD"); }

std::optional<std::string> decompress(std::string_view data) {
  constexpr std::size_t kMost = 1 << 16;
  std::string text(kMost, '\0');
  std::size_t filled = 0;
  try {
    const auto source =
        tidemark::decompress_if_needed(tidemark::make_memory_source(data), "fuzz", {std::int64_t{kMost}, 1000});
    while (filled < text.size()) {
      const std::size_t n = source->read(std::span(text).subspan(filled));
      if (n == 0) break;
      filled += n;
    }
  } catch (const tidemark::Error&) {
    return std::nullopt;
  }
  text.resize(filled);
  return text;
}

std::optional<std::string> mutate(std::string_view data, Random& random) {
  const bool compressed = is_zstd(data);
  const auto plain = compressed ? decompress(data) : std::string(data);
  if (!plain) return std::nullopt;
  auto file = split(*plain);
  if (!file) return std::nullopt;
  Mutator(*file, random).run();
  std::string text = join(*file);
  // Rarely the other way around: compressing costs more than reading.
  const bool compress = compressed ? !random.one_in(4) : random.one_in(256);
  return compress ? tidemark::compress_zstd(text) : text;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  Random random(seed);
  if (random.one_in(16)) return LLVMFuzzerMutate(data, size, max_size);
  const auto text = mutate({reinterpret_cast<const char*>(data), size}, random);
  if (!text || text->empty() || text->size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text->data(), text->size());
  return text->size();
}
