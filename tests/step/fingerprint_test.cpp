#include "tidemark/step/fingerprint.h"

#include <gtest/gtest.h>

#include <set>

#include "../support/permute_step.h"
#include "../support/random_step.h"
#include "../support/small_step.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/write_step.h"

namespace tidemark::step {
namespace {

using test::SmallStep;

Hash128 finished(SmallStep&& s) {
  s.add_events();
  return fingerprint(std::move(s.b).finish());
}

TEST(Fingerprint, DoesNotDependOnTheNumberingOfIds) {
  int really_permuted = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Step step = test::random_step(seed);
    const Step permuted = test::permute_ids(step, seed + 1);
    ASSERT_EQ(fingerprint(permuted), fingerprint(step)) << "seed " << seed;
    really_permuted += permuted != step ? 1 : 0;
  }
  EXPECT_GT(really_permuted, 490);
}

TEST(Fingerprint, DifferentStepsDiffer) {
  std::set<Hash128> seen;
  std::set<std::string> texts;
  const test::RandomStepOptions options{.with_extras = false};
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Step step = test::random_step(seed, options);
    if (texts.insert(step_text(step)).second) seen.insert(fingerprint(step));
  }
  EXPECT_EQ(seen.size(), texts.size());
}

// One row of a table changed at a time, through the text, so that every field is tried.
struct Change {
  const char* what;
  std::string from;
  std::string to;
  bool changes_fingerprint;
};

TEST(Fingerprint, EveryFieldCountsOrIsDocumentedNotTo) {
  SmallStep s;
  s.b.add_meta("host", "a");
  s.b.add_source({s.b.intern("train.py"), 7, s.b.intern("f")});
  s.add_events();
  const std::string text = step_text(std::move(s.b).finish());
  const Hash128 before = fingerprint(parse_step(text));
  const Change changes[] = {
      {"a stride", R"(["float32",[2,2],[2,1]])", R"(["float32",[2,2],[1,2]])", true},
      {"a size", R"(["float32",[2,2],[2,1]])", R"(["float32",[2,1],[2,1]])", true},
      {"the dtype", R"(["float32",[2,2],[2,1]])", R"(["int32",[2,2],[2,1]])", true},
      {"a module's class", R"("Net")", R"("Nut")", true},
      {"an op's name", R"("aten.exp.default")", R"("aten.sin.default")", true},
      {"a node's name", R"("ExpBackward0")", R"("SinBackward0")", true},
      {"the device", R"("cpu")", R"("cuda:0")", true},
      {"a role", R"([16,2,"input",null])", R"([16,2,"buffer",null])", true},
      {"a size in bytes", R"([16,2,"input",null])", R"([17,2,"input",null])", true},
      {"whether hooks see a save", R"([0,0,1,true])", R"([0,0,1,false])", true},
      {"a save's slot", R"([0,0,1,true])", R"([0,1,1,true])", true},
      {"a flag", R"(null,null,null,null,"",null,0,null])", R"(null,null,null,null,"m",null,0,null])", true},
      {"a stream", R"(null,null,null,null,"",null,0,null])", R"(null,null,null,null,"",null,1,null])", true},
      {"what a call is given", "[0,null,0,0,[0],[1]]", "[0,null,0,0,[],[1]]", true},
      {"what a call returns", "[0,null,0,0,[0],[1]]", "[0,null,0,0,[0],[0]]", true},
      {"the order of events", "[\"free\",1]\n[\"phase\",1]", "[\"phase\",1]\n[\"free\",1]", true},
      {"a tensor's version", "[0,0,0,0,false]", "[0,1,0,0,false]", true},
      {"whether a tensor is a view", "[0,0,0,0,false]", "[0,0,0,0,true]", true},
      {"FLOPs", R"(null,null,null,null,"",null,0,null])", R"(null,5,null,null,"",null,0,null])", false},
      {"bytes moved", R"(null,null,null,null,"",null,0,null])", R"(null,null,5,6,"",null,0,null])", false},
      {"the source file", R"("train.py")", R"("/elsewhere/train.py")", false},
      {"an op's source", R"(null,null,null,null,"",null,0,null])", R"(null,null,null,null,"",null,0,0])", false},
      {"metadata", R"(["host","a"])", R"(["host","b"])", false},
  };
  for (const Change& change : changes) {
    std::string changed = text;
    const auto at = changed.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.what << "\n" << text;
    changed.replace(at, change.from.size(), change.to);
    EXPECT_EQ(fingerprint(parse_step(changed)) != before, change.changes_fingerprint) << change.what;
  }
}

TEST(Fingerprint, RowsWithoutAnyUseCountToo) {
  const Hash128 before = finished(SmallStep());
  SmallStep extra_module;
  extra_module.b.add_module({extra_module.root, extra_module.b.intern("unused"), extra_module.b.intern("Linear")});
  EXPECT_NE(finished(std::move(extra_module)), before);
  SmallStep extra_storage;
  extra_storage.b.add_storage({4, extra_storage.b.intern("cpu"), Role::kPlain, {}});
  EXPECT_NE(finished(std::move(extra_storage)), before);
  SmallStep extra_tensor;
  extra_tensor.b.add_tensor({extra_tensor.input_storage, 0, extra_tensor.layout, 0, true});
  EXPECT_NE(finished(std::move(extra_tensor)), before);
}

TEST(Fingerprint, SequenceNumbersDoNotCount) {
  // They go on counting over the life of a process, so a second capture of one step has others.
  SmallStep s;
  s.add_events();
  std::string text = step_text(std::move(s.b).finish());
  const Hash128 before = fingerprint(parse_step(text));
  const std::string row = "{\"section\":\"nodes\",\"count\":1}\n[3,0,0]";
  const auto at = text.find(row);
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, row.size(), "{\"section\":\"nodes\",\"count\":1}\n[3,99,0]");
  EXPECT_EQ(fingerprint(parse_step(text)), before);
}

}  // namespace
}  // namespace tidemark::step
