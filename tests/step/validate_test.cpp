// What the builder refuses, one rule at a time, with the record and field that the message names. (Files go through
// the same rules; tests/hostile has their line numbers.)

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "../support/small_step.h"
#include "tidemark/base/error.h"
#include "tidemark/step/limits.h"

namespace tidemark::step {
namespace {

using test::SmallStep;

// The message after `change`, which acts before the events are added unless it adds them itself.
std::string error_of(const std::function<void(SmallStep&)>& change, bool add_events = true) {
  SmallStep s;
  try {
    change(s);
    if (add_events) s.add_events();
    [[maybe_unused]] const Step step = std::move(s.b).finish();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string event_error_of(const std::function<void(SmallStep&)>& events) { return error_of(events, false); }

TEST(Validate, TheSmallStepIsValid) {
  EXPECT_EQ(error_of([](SmallStep&) {}), "no error");
}

TEST(Validate, DanglingIdsAreNamedWithTheirField) {
  EXPECT_EQ(error_of([](SmallStep& s) {
              s.b.add_tensor({StorageId(9), 0, s.layout, 0, false});
            }),
            "[tensors[3].storage] a reference leads nowhere; expected an id of storages from 0 to 2, got 9");
  EXPECT_EQ(error_of([](SmallStep& s) {
              s.b.add_tensor({StorageId(), 0, s.layout, 0, false});
            }),
            "[tensors[3].storage] a reference is missing; expected an id of storages from 0 to 2, got none");
  EXPECT_EQ(error_of([](SmallStep& s) {
              const TensorId inputs[] = {s.input, TensorId(7)};
              s.b.add_op({.name = "x",
                          .pass = s.forward,
                          .call = {},
                          .node = {},
                          .region = {},
                          .inputs = inputs,
                          .outputs = {},
                          .args = {},
                          .source = {},
                          .group = {},
                          .flags = {}});
            }),
            "[ops[2].inputs[1]] a reference leads nowhere; expected an id of tensors from 0 to 2, got 7");
}

TEST(Validate, AParentMustComeFirst) {
  EXPECT_EQ(
      error_of([](SmallStep& s) {
        s.b.add_module({ModuleId(1), s.b.intern("a"), s.b.intern("A")});
      }),
      "[modules[1].parent] a parent must come before its children (otherwise there could be a cycle); expected none "
      "or an id below 1, got 1");
}

TEST(Validate, DepthIsCapped) {
  const auto nest = [](SmallStep& s, std::int64_t levels) {
    ModuleId parent = s.root;
    for (std::int64_t i = 1; i < levels; ++i) parent = s.b.add_module({parent, s.b.intern("a"), s.b.intern("A")});
  };
  EXPECT_EQ(error_of([&](SmallStep& s) { nest(s, kMaxDepth); }), "no error");
  EXPECT_EQ(error_of([&](SmallStep& s) { nest(s, kMaxDepth + 1); }),
            "[modules[512].parent] the nesting is too deep; expected fewer than 512 levels, got level 512");
}

TEST(Validate, SizesMayNotOverflow) {
  const std::int64_t huge[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  const std::int64_t ones[] = {1, 1};
  EXPECT_EQ(error_of([&](SmallStep& s) { s.b.add_layout(DType::kFloat32, huge, ones); }),
            "[layouts[1].sizes[1]] the number of elements does not fit 64 bits");
  const std::int64_t twos[] = {2, 2};
  const std::int64_t far[] = {std::numeric_limits<std::int64_t>::max(), 1};
  EXPECT_EQ(error_of([&](SmallStep& s) { s.b.add_layout(DType::kFloat32, twos, far); }),
            "[layouts[1].strides[0]] the distance from the first to the last element does not fit 64 bits");
  EXPECT_EQ(error_of([](SmallStep& s) {
              for (int i = 0; i < 2; ++i) s.b.add_storage({std::int64_t{1} << 62, s.b.intern("cpu"), Role::kPlain, {}});
            }),
            "[storages[3].bytes] the sizes of all storages together are too large; expected at most 2^62 bytes, got "
            "4611686018427387904 in this storage");
}

TEST(Validate, ResizesCountTowardsTheSumOfSizes) {
  EXPECT_EQ(
      error_of(
          [](SmallStep& s) {
            s.add_events();
            s.b.resize(s.input_storage, kMaxTotalBytes);
          },
          false),
      "[storages[1].bytes] the sizes of all storages together are too large; expected at most 2^62 bytes, got 16 in "
      "this storage");
  EXPECT_EQ(event_error_of([](SmallStep& s) { s.b.push(EventKind::kResize, 999); }),
            "[events[0]] a resize has no id of its own; expected resize(storage, bytes)");
}

TEST(Validate, AModulesWholeNameIsCapped) {
  // The path of a child is its parent's, a dot and its own name: 4096 bytes fit, one more does not.
  const auto with_child = [](std::size_t length) {
    return error_of([&](SmallStep& s) {
      const ModuleId a = s.b.add_module({s.root, s.b.intern(std::string(2000, 'a')), s.b.intern("A")});
      s.b.add_module({a, s.b.intern(std::string(length, 'b')), s.b.intern("B")});
    });
  };
  EXPECT_EQ(with_child(2094), "no error");  // "" + "." + 2000 + "." + 2094 = 4096
  EXPECT_EQ(with_child(2095),
            "[modules[2].name] the fully qualified name is too long; expected at most 4096 bytes, got 4097");
}

TEST(Validate, ATensorStaysInItsStorage) {
  // 4 floats are 16 bytes: the storage is full, so one more element does not fit.
  EXPECT_EQ(
      error_of([](SmallStep& s) {
        s.b.add_tensor({s.input_storage, 0, s.layout, 1, true});
      }),
      "[tensors[3].layout] the tensor reaches beyond storage 0; expected at most 16 bytes, got 20; try: check sizes, "
      "strides and offset, which are in elements");
  EXPECT_EQ(error_of(
                [](SmallStep& s) {
                  s.b.add_tensor({s.input_storage, 0, s.layout, 1, true});
                  s.add_events();
                  s.b.resize(s.input_storage, 20);  // at some time it is large enough
                },
                false),
            "no error");
}

TEST(Validate, AliasesMustFitTheTensors) {
  const auto with_output = [](const Tensor& value, AliasKind alias) {
    return error_of([&](SmallStep& s) {
      const TensorId out = s.b.add_tensor({s.input_storage, value.version, s.layout, 0, true});
      const TensorId inputs[] = {s.made};
      const Output outputs[] = {{out, alias, 0}};
      s.b.add_op({.name = "x",
                  .pass = s.forward,
                  .call = {},
                  .node = {},
                  .region = {},
                  .inputs = inputs,
                  .outputs = outputs,
                  .args = {},
                  .source = {},
                  .group = {},
                  .flags = {}});
    });
  };
  EXPECT_EQ(
      with_output({}, AliasKind::kView),
      "[ops[2].aliases[0]] the output is said to share input 0, but has another storage; expected storage 1, got 0");
  EXPECT_EQ(error_of([](SmallStep& s) {
              const TensorId inputs[] = {s.input};
              const Output outputs[] = {{s.input, AliasKind::kMutates, 0}};
              s.b.add_op({.name = "x",
                          .pass = s.forward,
                          .call = {},
                          .node = {},
                          .region = {},
                          .inputs = inputs,
                          .outputs = outputs,
                          .args = {},
                          .source = {},
                          .group = {},
                          .flags = {}});
            }),
            "[ops[2].aliases[0]] a mutated value has a newer version; expected a version above 0, got 0");
}

TEST(Validate, ACollectiveNamesItsGroup) {
  EXPECT_EQ(
      error_of([](SmallStep& s) {
        s.b.add_op({.name = "x",
                    .pass = s.forward,
                    .call = {},
                    .node = {},
                    .region = {},
                    .inputs = {},
                    .outputs = {},
                    .args = {},
                    .source = {},
                    .group = {},
                    .flags = OpFlag::kCollective});
      }),
      "[ops[2].group] a collective op names its group, and no other op does; expected the name of a group, got none");
}

TEST(Validate, TextIsUtf8) {
  EXPECT_EQ(error_of([](SmallStep& s) { s.b.intern("\xFF"); }), "[strings[6]] the text is not UTF-8");
}

TEST(Validate, EventsNeedTheirOrder) {
  EXPECT_EQ(
      event_error_of([](SmallStep& s) { s.b.enter(s.call); }),
      "[events[0].enter] call 0 is entered in another pass than its own; expected pass 0, got no phase event yet");
  EXPECT_EQ(event_error_of([](SmallStep& s) {
              s.b.phase(s.forward);
              s.b.begin(s.op);
            }),
            "[events[1].begin] op 0 does not belong to the module call it runs in; expected no call, got call 0");
  EXPECT_EQ(event_error_of([](SmallStep& s) {
              s.b.phase(s.forward);
              s.b.free(s.made_storage);
              s.b.alloc(s.made_storage);
            }),
            "[events[1].free] storage 1 is freed before it is allocated; expected its alloc event first");
  EXPECT_EQ(event_error_of([](SmallStep& s) {
              s.b.alloc(s.made_storage);
              s.b.alloc(s.made_storage);
            }),
            "[events[1].alloc] storage 1 is allocated twice; expected each storage once");
  EXPECT_EQ(event_error_of([](SmallStep& s) {
              s.b.free(s.input_storage);
              s.b.free(s.input_storage);
            }),
            "[events[1].free] storage 0 is freed twice; expected each storage once");
  EXPECT_EQ(event_error_of([](SmallStep& s) { s.b.release(s.save); }),
            "[events[0].release] save 0 is released before it is packed; expected its pack event first");
  EXPECT_EQ(event_error_of([](SmallStep& s) {
              s.b.free(s.made_storage);
              s.b.pack(s.save);
            }),
            "[events[1].pack] save 0 uses storage 1, which nothing holds any more; expected a storage that is alive");
}

TEST(Validate, AFreshOutputIsAllocatedInItsOp) {
  EXPECT_EQ(
      event_error_of([](SmallStep& s) {
        s.b.phase(s.forward);
        s.b.enter(s.call);
        s.b.alloc(s.made_storage);
        s.b.begin(s.op);
        s.b.end(s.op);
      }),
      "[events[4].end] output 0 of op 0 is said to be fresh, but storage 1 was not allocated in the op; expected its "
      "alloc event between the op's begin and end");
}

TEST(Validate, WhatStartsMustEnd) {
  EXPECT_EQ(event_error_of([](SmallStep& s) {
              s.b.phase(s.forward);
              s.b.enter(s.call);
            }),
            "[ops[0]] the op never begins; expected a begin and an end event");
  EXPECT_EQ(error_of([](SmallStep& s) {
              s.b.add_call({s.root, {}, 1, s.forward});
            }),
            "[calls[1]] the call is never entered; expected an enter and an exit event");
  EXPECT_EQ(error_of([](SmallStep& s) {
              s.b.add_save({s.node, 1, s.made, true});
            }),
            "[saves[1]] the save is never packed; expected a pack event");
  EXPECT_EQ(error_of(
                [](SmallStep& s) {
                  s.add_events();
                  s.b.node(s.node);
                },
                false),
            "[nodes[0]] the node never ends; expected a done event");
}

TEST(Validate, ACallHasItsIndex) {
  EXPECT_EQ(
      error_of([](SmallStep& s) {
        const CallId second = s.b.add_call({s.root, {}, 0, s.forward});
        s.b.phase(s.forward);
        s.b.enter(second);
        s.b.exit(second);
      }),
      "[events[4].enter] call 0 has the wrong index; expected 1, the number of earlier calls of module 0 in this pass, "
      "got 0");
}

TEST(Validate, SavesOfANodeHaveSlotsOfTheirOwn) {
  EXPECT_EQ(error_of([](SmallStep& s) {
              s.b.pack(s.b.add_save({s.node, 0, s.input, true}));
            }),
            "[saves[1].slot] node 0 has two saves in one slot; expected a slot of its own, got 0");
}

}  // namespace
}  // namespace tidemark::step
