// Files of up to 1 MiB that try to be expensive: whether they are accepted or refused, it must be cheap.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cost.h"
#include "tidemark/base/error.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/violation.h"

namespace tidemark::test {

namespace {

constexpr std::size_t kFileBytes = 1 << 20;

std::string repeat(std::string_view text, std::size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

// The text of a step file with these rows, each with its line break, and no others.
class FileText {
 public:
  FileText& rows(std::string_view section, std::string_view text) {
    rows_[std::string(section)] = text;
    return *this;
  }
  FileText& after_events(std::string_view text) {
    after_events_ = text;
    return *this;
  }

  std::string text() const {
    std::string all = "{\"tidemark\":\"step\",\"version\":[1,0]}\n";
    for (const std::string_view name : step::kTableNames) {
      const auto entry = rows_.find(std::string(name));
      const std::string_view rows = entry == rows_.end() ? std::string_view() : std::string_view(entry->second);
      all += fmt::format("{{\"section\":\"{}\",\"count\":{}}}\n", name, std::count(rows.begin(), rows.end(), '\n'));
      all += rows;
    }
    return all + after_events_ + "{\"section\":\"end\",\"count\":0}\n";
  }

 private:
  std::map<std::string, std::string> rows_;
  std::string after_events_;
};

// As many copies of one row as a file of 1 MiB has room for, with the few other rows that it refers to.
std::string full_of(std::string_view section, std::string_view row) {
  FileText file;
  file.rows("strings", "\"a\"\n\"b\"\n\"\"\n").rows("modules", "[null,2,0]\n").rows("passes", "[\"forward\",0,0,0]\n");
  file.rows("layouts", "[\"int8\",[],[]]\n").rows("storages", "[1,0,\"parameter\",null]\n");
  file.rows("tensors", "[0,0,0,0,false]\n").rows("nodes", "[0,0,0]\n").rows("saves", "[0,0,0,true]\n");
  const std::string line = std::string(row) + "\n";
  return file.rows(section, repeat(line, (kFileBytes - 1000) / line.size())).text();
}

// `rows` rows, the i-th made by `make(i)`.
std::string many(std::size_t rows, const std::function<std::string(std::size_t)>& make) {
  std::string text;
  for (std::size_t i = 0; i < rows; ++i) text += make(i) + "\n";
  return text;
}

void read(const std::string& data) {
  try {
    step::parse_step(data);
  } catch (const Error& error) {
    EXPECT_NE(error.info().kind, ErrorKind::kInternal) << error.what();
  }
}

void expect_cheap_to_read(const std::string& data, std::int64_t decompressed_bytes = 0) {
  ASSERT_LE(data.size(), kFileBytes);
  const Cost cost = measure([&] { read(data); });
  expect_cheap(cost, decompressed_bytes);
  if (testing::Test::HasFailure())
    fmt::print(stderr, "took {:.3f} s and {} MiB\n", cost.seconds, cost.peak_bytes >> 20);
}

TEST(CostOfHostileFiles, ManyTinyRowsOfOneTable) {
  struct Filler {
    std::string_view section, row;
  };
  constexpr auto kFillers =
      std::to_array<Filler>({{"meta", R"(["a",""])"},
                             {"strings", R"("")"},
                             {"strings", R"("a")"},
                             {"modules", "[null,0,0]"},
                             {"passes", R"(["loss",0,0,0])"},
                             {"calls", "[0,null,0,0,[],[]]"},
                             {"calls", "[0,0,0,0,[],[]]"},
                             {"sources", "[0,0,0]"},
                             {"layouts", R"(["int8",[],[]])"},
                             {"layouts", R"(["int8",[0,0,0,0,0,0],[0,0,0,0,0,0]])"},
                             {"storages", R"([0,0,"plain",null])"},
                             {"tensors", "[0,0,0,0,true]"},
                             {"bindings", R"([0,0,0,"buffer",true])"},
                             {"nodes", "[0,0,0]"},
                             {"args", "[]"},
                             {"args", "[[0,[[],[],[],[],[],[],[],[]]]]"},
                             {"args", R"([[0,{"string":0}]])"},
                             {"regions", R"(["fsdp",null,null,null,[]])"},
                             {"regions", R"(["fsdp",null,null,null,[0,0,0,0,0,0,0,0]])"},
                             {"ops", R"([0,0,null,null,null,[],[],[],null,0,0,0,"",null,0,null])"},
                             {"saves", "[0,0,0,true]"},
                             {"notes", "[0,0,null]"},
                             {"events", R"(["phase",0])"},
                             {"events", R"(["alloc",0])"},
                             {"events", R"(["enter",0])"},
                             {"events", R"(["resize",0,1])"},
                             {"events", R"(["node",0])"},
                             {"events", R"(["pack",0])"}});
  for (const Filler& filler : kFillers) {
    SCOPED_TRACE(fmt::format("{} {}", filler.section, filler.row));
    expect_cheap_to_read(full_of(filler.section, filler.row));
  }
}

TEST(CostOfHostileFiles, ManyDifferentStrings) {
  expect_cheap_to_read(
      FileText().rows("strings", many(100'000, [](std::size_t i) { return fmt::format("\"{}\"", i); })).text());
}

TEST(CostOfHostileFiles, ManyLongStringsThatDifferAtTheirEnd) {
  const std::string same(2000, 'a');
  expect_cheap_to_read(
      FileText().rows("strings", many(500, [&](std::size_t i) { return fmt::format("\"{}{}\"", same, i); })).text());
}

TEST(CostOfHostileFiles, OneLongLine) {
  const std::size_t size = kFileBytes - 2000;
  const std::map<std::string, std::string> lines = {
      {"opened lists", std::string(size, '[')},
      {"opened objects", repeat("{\"a\":", size / 5)},
      {"empty lists", "[" + repeat("[],", size / 3) + "0]"},
      {"zeros", "[" + repeat("0,", size / 2) + "0]"},
      {"long number", std::string(size, '9')},
      {"long fraction", "0." + std::string(size, '1')},
      {"long exponent", "1e" + std::string(size, '9')},
      {"long string", "\"" + std::string(size, 'a') + "\""},
      {"escapes", "\"" + repeat("\\u0000", size / 6) + "\""},
      {"spaces", std::string(size, ' ')},
      {"equal keys", "{" + repeat("\"a\":0,", size / 6) + "\"b\":0}"},
      {"long key twice", fmt::format("{{\"{0}\":0,\"{0}\":0}}", std::string(size / 2 - 10, 'a'))},
      {"empty objects", "[" + repeat("{},", size / 3) + "0]"},
  };
  for (const auto& [what, line] : lines) {
    SCOPED_TRACE(what);
    expect_cheap_to_read(line + "\n");
    expect_cheap_to_read(FileText().rows("strings", line + "\n").text());
    expect_cheap_to_read(FileText().rows("args", line + "\n").text());
    expect_cheap_to_read(FileText().rows("args", "[[0," + line + "]]\n").text());
    expect_cheap_to_read(FileText().rows("events", "[" + line + "]\n").text());
    expect_cheap_to_read(
        FileText().after_events("{\"section\":\"x\",\"count\":1,\"optional\":true}\n" + line + "\n").text());
  }
}

TEST(CostOfHostileFiles, ObjectWithManyKeys) {
  std::string object = "{";
  for (int i = 0; i < 90'000; ++i) object += fmt::format("\"{:05}\":0,", i);
  object += "\"\":0}\n";
  expect_cheap_to_read(FileText().after_events("{\"section\":\"x\",\"count\":1,\"optional\":true}\n" + object).text());
}

TEST(CostOfHostileFiles, ManyOptionalSections) {
  const std::string sections = many(
      20'000, [](std::size_t i) { return fmt::format("{{\"section\":\"x{}\",\"count\":0,\"optional\":true}}", i); });
  expect_cheap_to_read(FileText().after_events(sections).text());
}

TEST(CostOfHostileFiles, OptionalSectionWithManyRows) {
  const std::string rows = repeat("0\n", kFileBytes / 2 - 1000);
  const std::string header = fmt::format("{{\"section\":\"x\",\"count\":{},\"optional\":true}}\n", rows.size() / 2);
  expect_cheap_to_read(FileText().after_events(header + rows).text());
}

TEST(CostOfHostileFiles, OpWithManyInputsThatManyArgumentsName) {
  FileText file;
  file.rows("strings", many(1000, [](std::size_t i) { return fmt::format("\"{}\"", i); }));
  file.rows("passes", "[\"loss\",0,0,0]\n").rows("layouts", "[\"int8\",[],[]]\n");
  file.rows("storages", "[1,0,\"input\",null]\n").rows("tensors", "[0,0,0,0,false]\n");
  std::string args = "[";
  for (int i = 0; i < 1000; ++i) args += fmt::format("{}[{},{{\"inputs\":[0,200000]}}]", i == 0 ? "" : ",", i);
  file.rows("args", args + "]\n");
  const std::string op = "[0,0,null,null,null,[{}0],[],[],0,0,0,0,\"\",null,0,null]\n";
  file.rows("ops", fmt::format(fmt::runtime(op), repeat("0,", 199'999)) +
                       fmt::format(fmt::runtime(op), repeat("0,", 199'999)));
  file.rows("events", "[\"phase\",0]\n[\"begin\",0]\n[\"end\",0]\n[\"begin\",1]\n[\"end\",1]\n");
  expect_cheap_to_read(file.text());
}

TEST(CostOfHostileFiles, OpThatRefersToOneInputManyTimesInItsOutputs) {
  FileText file;
  file.rows("strings", "\"a\"\n").rows("passes", "[\"loss\",0,0,0]\n").rows("layouts", "[\"int8\",[],[]]\n");
  file.rows("storages", "[1,0,\"input\",null]\n").rows("tensors", "[0,0,0,0,false]\n");
  file.rows("ops", fmt::format("[0,0,null,null,null,[0],[{}0],[{}\"view:0\"],null,0,0,0,\"\",null,0,null]\n",
                               repeat("0,", 80'000), repeat("\"view:0\",", 80'000)));
  file.rows("events", "[\"phase\",0]\n[\"begin\",0]\n[\"end\",0]\n");
  expect_cheap_to_read(file.text());
}

TEST(CostOfHostileFiles, ModulesNestedToTheCapMany) {
  // Chains of 511 modules under one root; all chains start with modules of different names.
  FileText file;
  file.rows("strings", "\"\"\n" + many(100, [](std::size_t i) {
                         return fmt::format("\"{}\"",
                                            std::string(60, static_cast<char>('a' + i % 26)) + std::to_string(i));
                       }));
  std::string modules = "[null,0,0]\n";
  for (std::size_t chain = 0; chain < 90; ++chain)
    for (std::size_t depth = 0; depth < 510; ++depth)
      modules += fmt::format("[{},{},0]\n", depth == 0 ? 0 : chain * 510 + depth, chain + 1);
  expect_cheap_to_read(file.rows("modules", modules).text());
}

TEST(CostOfHostileFiles, RegionsAndCallsNestedToTheCap) {
  const auto parent = [](std::size_t i) { return i % 512 == 0 ? std::string("null") : std::to_string(i - 1); };
  FileText file;
  file.rows("strings", "\"\"\n").rows("modules", "[null,0,0]\n").rows("passes", "[\"forward\",0,0,0]\n");
  file.rows("calls", many(20'000, [&](std::size_t i) { return fmt::format("[0,{},{},0,[],[]]", parent(i), i); }));
  file.rows("regions",
            many(10'000, [&](std::size_t i) { return fmt::format("[\"fsdp\",{},null,null,[]]", parent(i)); }));
  std::string events = "[\"phase\",0]\n";
  for (std::size_t i = 0; i < 512; ++i) events += fmt::format("[\"enter\",{}]\n", i);
  expect_cheap_to_read(file.rows("events", events).text());
}

// Parents and names, chosen so that both together are the same modulo a number of buckets that the hash tables of
// libstdc++ use on the way: in such a table every look-up would walk one long chain, for seconds.
TEST(CostOfHostileFiles, NamesThatWouldCollideInAHashTable) {
  constexpr std::uint64_t kBuckets = 42043;
  FileText file;
  file.rows("strings", "\"\"\n" + many(kBuckets, [](std::size_t i) { return fmt::format("\"{:x}\"", i); }));
  file.rows("modules", many(40'000, [](std::size_t i) {
              if (i % 511 == 0) return fmt::format("[null,{},0]", i / 511);  // chains as deep as allowed
              const std::uint64_t parent = i - 1;
              const std::uint64_t name = kBuckets - (parent << 32) % kBuckets;
              return fmt::format("[{},{},0]", parent, name);
            }));
  expect_cheap_to_read(file.text());
}

TEST(CostOfHostileFiles, CountsThatAreNotFilled) {
  const std::string text = FileText().text();
  for (const std::string_view name : step::kTableNames) {
    SCOPED_TRACE(name);
    std::string file = text;
    const std::string header = fmt::format("{{\"section\":\"{}\",\"count\":0}}", name);
    const auto most = step::max_rows(static_cast<step::Table>(
        std::find(step::kTableNames.begin(), step::kTableNames.end(), name) - step::kTableNames.begin()));
    file.replace(file.find(header), header.size(), fmt::format("{{\"section\":\"{}\",\"count\":{}}}", name, most));
    expect_cheap_to_read(file);
  }
}

// --- zstd

struct Compression {
  int level = 19;
  bool declares_size = true;
  int window_log = 0;
};

std::string compress(std::string_view data, const Compression& how) {
  std::string out(ZSTD_compressBound(data.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, how.level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, how.declares_size ? 1 : 0);
  if (how.window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, how.window_log);
  const std::size_t n = ZSTD_compress2(context, out.data(), out.size(), data.data(), data.size());
  ZSTD_freeCCtx(context);
  EXPECT_FALSE(ZSTD_isError(n));
  out.resize(n);
  return out;
}

TEST(CostOfHostileFiles, ZstdThatExpandsAThousandTimes) {
  const std::string rows = FileText().rows("notes", repeat("[0,0,null]\n", 4'000'000)).text();
  const std::string line = "{\"tidemark\":" + std::string(40 << 20, ' ');
  for (const bool declares_size : {true, false}) {
    for (const std::string& text : {rows, line}) {
      const std::string data = compress(text, {.level = 3, .declares_size = declares_size});
      EXPECT_GT(text.size() / data.size(), 1000u);
      expect_cheap_to_read(data);
    }
  }
}

TEST(CostOfHostileFiles, ZstdThatClaimsAHugeSize) {
  std::string data = compress(std::string(300, ' '), {});
  ASSERT_EQ(data[4] & 0xE0, 0x60);  // one segment, size in two bytes
  const std::string huge = std::string(data, 0, 4) + static_cast<char>(0xE0) + std::string(8, '\x7f') + data.substr(7);
  expect_cheap_to_read(huge);
}

TEST(CostOfHostileFiles, ZstdWithTheLargestWindow) {
  for (const int window_log : {20, 24, 25, 27}) {
    SCOPED_TRACE(window_log);
    expect_cheap_to_read(compress(FileText().text(), {.declares_size = false, .window_log = window_log}));
  }
}

TEST(CostOfHostileFiles, ZstdOfManyFrames) {
  expect_cheap_to_read(repeat(compress("", {}), kFileBytes / 9 - 1));
  expect_cheap_to_read(repeat(compress("\n", {}), kFileBytes / 10 - 1));
}

// Just below the cap on expansion everything is read: the cost follows the decompressed size.
TEST(CostOfHostileFiles, ZstdThatExpandsAsMuchAsItMay) {
  for (const std::string_view row : {"[]\n", "[0,0,0]\n"}) {
    SCOPED_TRACE(row);
    const std::string_view section = row == "[]\n" ? "args" : "nodes";
    FileText file;
    file.rows("strings", "\"a\"\n").rows("passes", "[\"loss\",0,0,0]\n").rows(section, repeat(row, 1'000'000));
    // Text that does not compress, in an optional section, pays for the rest.
    std::string noise = "{\"section\":\"x\",\"count\":1,\"optional\":true}\n\"";
    std::uint64_t state = 1;
    for (int i = 0; i < 60'000; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      noise += static_cast<char>('A' + (state >> 59));
    }
    const std::string text = file.after_events(noise + "\"\n").text();
    const std::string data = compress(text, {});
    expect_cheap_to_read(data, static_cast<std::int64_t>(text.size()));
  }
}

}  // namespace

}  // namespace tidemark::test
