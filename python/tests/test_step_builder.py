"""Making a Step from Python."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidemark
from tidemark import Error, Step, StepBuilder

pytestmark = pytest.mark.fast


def rebuild(step: Step) -> Step:
    """The step made anew, from what its tables say."""
    b = StepBuilder()
    for key, value in step.meta.items():
        b.add_meta(key, value)
    for i, string in enumerate(step.strings):
        assert b.intern(string) == i
    for m in step.modules:
        assert b.add_module(m.parent, m.name, m.type) == m.id
    for p in step.passes:
        assert b.add_pass(p.kind, micro_batch=p.micro_batch, graph_task=p.graph_task, rank=p.rank) == p.id
    for c in step.calls:
        assert b.add_call(c.module, parent=c.parent, index=c.index, pass_=c.pass_, inputs=c.inputs) == c.id
        b.set_call_outputs(c.id, c.outputs)
    for s in step.sources:
        assert b.add_source(s.file, s.line, s.function) == s.id
    for layout in step.layouts:
        assert b.intern_layout(layout.dtype, layout.shape, layout.stride) == layout.id
    for s in step.storages:
        assert b.add_storage(s.bytes, s.device, s.role, s.of) == s.id
    for t in step.tensors:
        assert b.add_tensor(t.storage, t.layout, version=t.version, offset=t.offset, is_view=t.is_view) == t.id
    for x in step.bindings:
        b.add_binding(x.module, x.name, x.tensor, kind=x.kind, trainable=x.trainable)
    for n in step.nodes:
        assert b.add_node(n.name, sequence=n.sequence, pass_=n.pass_) == n.id
    for i, args in enumerate(step.args):
        assert b.intern_args(args) == i
    for r in step.regions:
        assert b.add_region(r.kind, parent=r.parent, call=r.call, args=r.args_id, held=r.held) == r.id
    add_ops(b, step)
    for s in step.saves:
        assert b.add_save(s.node, s.slot, s.tensor, hooked=s.hooked) == s.id
    for n in step.notes:
        b.add_note(n.kind, n.text, n.op)
    for kind, id in step.events:
        getattr(b, kind)(*(step.resizes[id] if kind == "resize" else (id,)))
    for name, rows in step.extras.items():
        b.add_extra(name, rows)
    return b.finish()


def add_ops(b: StepBuilder, step: Step) -> None:
    for op in step.ops:
        id = b.add_op(
            op.name,
            pass_=op.pass_,
            call=op.call,
            node=op.node,
            region=op.region,
            inputs=op.inputs,
            outputs=op.outputs,
            args=op.args_id,
            source=op.source,
            group=op.group,
            flags=op.flags,
            stream=op.stream,
            flops=op.flops,
            read_bytes=op.read_bytes,
            written_bytes=op.written_bytes,
        )
        assert id == op.id


def build_with_everything() -> StepBuilder:
    """A step that means little but has a row in every table, an event of every kind and all sorts of arguments."""
    b = StepBuilder()
    b.add_meta("recorded_by", "a test")
    root = b.add_module(None, "", "Model")
    inner = b.add_module(root, "inner", "Block")
    forward = b.add_pass("forward", micro_batch=1, graph_task=2, rank=3)
    backward = b.add_pass("backward")
    outer_call = b.add_call(root, parent=None, index=0, pass_=forward)
    call = b.add_call(inner, parent=outer_call, index=0, pass_=forward, inputs=[0])
    source = b.add_source("train.py", 12, "main")
    weight = b.add_storage(64, "cpu", "parameter")
    scratch = b.add_storage(32, "cpu")
    gradient = b.add_storage(64, "cpu", "plain")
    b.set_storage_role(gradient, "gradient", weight)
    layout = b.intern_layout("float32", [2, 4], [4, 1])
    w = b.add_tensor(weight, layout, offset=8)
    x = b.add_tensor(scratch, layout)
    x_changed = b.add_tensor(scratch, layout, version=1)
    x_view = b.add_tensor(scratch, b.intern_layout("float32", (4, 2), (1, 4)), version=1, is_view=True)
    g = b.add_tensor(gradient, layout)
    b.add_binding(inner, "weight", w, kind="parameter", trainable=True)
    node = b.add_node("CopyBackwards", sequence=5, pass_=forward)
    region = b.add_region("no_grad", call=call, held=[w], args=b.intern_args({"enabled": True}))
    args = b.intern_args({"p": 0.5, "inplace": False, "dims": [0, [1, None]], "mode": "mean", "tensors": range(0, 1)})
    first = b.add_op(
        "aten.all_reduce.default",
        pass_=forward,
        call=call,
        region=region,
        inputs=[w],
        outputs=[(x, "fresh", None)],
        args=args,
        source=source,
        group="world",
        flags={"random", "collective", "must_save"},
        stream=2,
        flops=10,
        read_bytes=32,
        written_bytes=0,
    )
    b.set_op_node(first, node)
    second = b.add_op("aten.zero_.default", pass_=forward, call=call, inputs=[x], outputs=[(x_changed, "mutates", 0)])
    third = b.add_op("aten.t.default", pass_=forward, call=call, inputs=[x_changed], outputs=[(x_view, "view", 0)])
    fourth = b.add_op("aten.mm.default", pass_=backward, node=node, inputs=[x_changed], outputs=[(g, "fresh", None)])
    b.set_call_outputs(call, [x_view, x_changed])
    save = b.add_save(node, 0, x_changed, hooked=False)
    b.add_note("imitated", "as a fused kernel would", first)
    b.add_note("missing", "nothing else")
    b.add_extra("workspace", ['{"op":1}', "[2,3]"])

    b.phase(forward)
    b.enter(outer_call)
    b.enter(call)
    for op in (first, second, third):
        b.begin(op)
        if op == first:
            b.alloc(scratch)
        b.end(op)
    b.pack(save)
    b.exit(call)
    b.exit(outer_call)
    b.free(scratch)
    b.phase(backward)
    b.node(node)
    b.unpack(save)
    b.begin(fourth)
    b.alloc(gradient)
    b.end(fourth)
    b.drop(save)
    b.done(node)
    b.release(save)
    b.resize(weight, 128)
    return b


def test_the_shipped_example_is_rebuilt_from_its_tables(example):
    copy = rebuild(example)
    assert copy == example
    assert copy.fingerprint == example.fingerprint
    assert copy.text() == example.text()


def test_every_kind_of_row_and_event_survives_reading_and_rebuilding():
    step = build_with_everything().finish()
    assert {kind for kind, _ in step.events} == set(tidemark.EVENT_KINDS)
    assert Step.parse(step.text()) == step
    assert rebuild(step).text() == step.text()


def test_what_was_told_is_what_is_read():
    step = build_with_everything().finish()
    op = step.ops[0]
    assert op.flags == {"random", "collective", "must_save"}
    assert op.args == {"p": 0.5, "inplace": False, "dims": [0, [1, None]], "mode": "mean", "tensors": range(0, 1)}
    assert type(op.args["inplace"]) is bool and type(op.args["dims"][0]) is int
    assert (op.group, op.stream, op.flops, op.read_bytes, op.written_bytes) == ("world", 2, 10, 32, 0)
    assert (op.node, op.region, op.source) == (0, 0, 0)
    assert step.ops[1].outputs == [(2, "mutates", 0)]
    assert (step.sources[0].file, step.sources[0].line, step.sources[0].function) == ("train.py", 12, "main")
    assert (step.regions[0].kind, step.regions[0].call, step.regions[0].held) == ("no_grad", 1, (0,))
    assert step.args[step.regions[0].args_id] == {"enabled": True}
    assert [(n.kind, n.text, n.op) for n in step.notes] == [
        ("imitated", "as a fused kernel would", 0),
        ("missing", "nothing else", None),
    ]
    assert (step.passes[0].micro_batch, step.passes[0].graph_task, step.passes[0].rank) == (1, 2, 3)
    assert (step.storages[2].role, step.storages[2].of) == ("gradient", 0)
    assert (step.saves[0].hooked, list(step.resizes)) == (False, [(0, 128)])
    assert step.extras == {"workspace": ['{"op":1}', "[2,3]"]}
    assert step.modules[1].fqn == "inner"
    assert [(c.module, c.parent, c.inputs, c.outputs) for c in step.calls] == [(0, None, (), ()), (1, 0, (0,), (3, 2))]


def test_push_takes_the_words_of_all_events():
    b = build_with_everything()
    step = build_with_everything().finish()
    pushed = StepBuilder()
    for kind in tidemark.EVENT_KINDS:
        if kind != "resize":
            pushed.push(kind, 0)
    with pytest.raises(tidemark.Error, match="a resize has no id of its own"):
        pushed.push("resize", 0)
    b.push("free", 2)
    assert list(b.finish().events) == [*step.events, ("free", 2)]


def test_equal_strings_layouts_and_arguments_share_an_id():
    b = StepBuilder()
    assert b.intern("a") == b.intern("a") != b.intern("b")
    assert b.intern_layout("int8", [2], [1]) == b.intern_layout("int8", (2,), (1,)) != b.intern_layout("bool", [2], [1])
    assert b.intern_args({"p": 1}) == b.intern_args({"p": 1}) != b.intern_args({"p": 1.0})
    assert b.intern_args({"p": 1}) != b.intern_args({"p": True})
    assert b.intern_args({}) is None


@pytest.mark.parametrize(
    "misuse, place",
    [
        (lambda b: b.add_op("x", pass_=0, flops=-1), "ops[0].flops"),
        (lambda b: b.add_op("x", pass_=0, inputs=[0], outputs=[(0, "view", None)]), "ops[0].aliases"),
        (lambda b: b.add_op("x", pass_=0, outputs=[(0, "fresh", 5)]), "ops[0].aliases"),
        (lambda b: b.intern_args({1: 2}), "args[0].1"),
        (lambda b: b.set_call_outputs(5, [1]), "calls[5]"),
        (lambda b: b.set_op_node(5, 1), "ops[5]"),
        (lambda b: b.set_storage_role(7, "parameter"), "storages[7]"),
        (lambda b: b.add_extra("ops", []), "extras[0].name"),
        (lambda b: b.add_extra("x", ["1\n2"]), "extras[0].rows[0]"),
        (lambda b: b.add_extra("x", ["{bad"]), "extras[0].rows[0]"),
        (lambda b: b.push("resize", 999), "events[0]"),
        (lambda b: (b.add_meta("k", "v" * 70000), b.finish()), "meta[0]"),
    ],
)
def test_misuse_is_refused_with_its_place(misuse, place):
    with pytest.raises(tidemark.Error) as caught:
        misuse(StepBuilder())
    assert caught.value.place == place


@pytest.mark.parametrize("kind", [kind for kind in tidemark.EVENT_KINDS if kind != "resize"])
@pytest.mark.parametrize("id", [0, 1, 2**32 - 2])
def test_an_event_with_a_wild_id_is_refused(kind, id):
    b = StepBuilder()
    b.push(kind, id)
    with pytest.raises(tidemark.Error):
        b.finish()


def test_every_nan_is_the_same_nan():
    import struct

    negative = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
    a, b = StepBuilder(), StepBuilder()
    a.intern_args({"p": negative})
    b.intern_args({"p": float("nan")})
    first = a.finish()
    assert first == b.finish()
    assert Step.parse(first.text()) == first


@pytest.mark.parametrize(
    "call, place, known",
    [
        (lambda b: b.add_pass("foreward"), "passes[2].kind", tidemark.PASS_KINDS),
        (lambda b: b.add_region("no_grads"), "regions[1].kind", tidemark.REGION_KINDS),
        (lambda b: b.add_storage(1, "cpu", "weights"), "storages[3].role", tidemark.ROLES),
        (lambda b: b.set_storage_role(1, "weights"), "storages[1].role", tidemark.ROLES),
        (lambda b: b.add_binding(0, "w", 0, kind="w", trainable=True), "bindings[1].kind", tidemark.BINDING_KINDS),
        (lambda b: b.intern_layout("float33", [], []), "layouts[2].dtype", tidemark.DTYPES),
        (lambda b: b.add_op("op", pass_=0, outputs=[(0, "copy", None)]), "ops[4].aliases", tidemark.ALIAS_KINDS),
        (lambda b: b.add_op("op", pass_=0, flags=["randomm"]), "ops[4].flags", tidemark.OP_FLAGS),
        (lambda b: b.push("malloc", 0), "events[24].kind", tidemark.EVENT_KINDS),
    ],
)
def test_an_unknown_word_is_refused_with_the_words_there_are(call, place, known):
    with pytest.raises(Error) as caught:
        call(build_with_everything())
    assert caught.value.kind == "input"
    assert caught.value.place == place
    assert caught.value.expected == "one of " + ", ".join(known)
    assert caught.value.got.startswith('"')


@pytest.mark.parametrize(
    "value, problem",
    [
        (object(), "cannot be kept"),
        (2**63, "cannot be kept"),
        ({"a": 1}, "cannot be kept"),
        (b"bytes", "cannot be kept"),
        ("\ud800", "cannot be kept"),
        (range(0, 4, 2), "does not name inputs"),
        (range(-1, 2), "does not name inputs"),
        ([[[[[1]]]]], "nested too deep"),
    ],
)
def test_an_argument_that_a_step_cannot_hold_is_refused_by_name(value, problem):
    with pytest.raises(Error, match=problem) as caught:
        StepBuilder().intern_args({"first": 1, "second": value})
    assert caught.value.place == "args[0].second"


def test_an_argument_that_contains_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(Error, match="nested too deep"):
        StepBuilder().intern_args({"endless": endless})


@pytest.mark.parametrize(
    "call",
    [
        lambda b: b.begin(None),
        lambda b: b.begin(-1),
        lambda b: b.begin(2**32 - 1),
        lambda b: b.begin("0"),
        lambda b: b.add_storage("4", "cpu"),
        lambda b: b.add_call(None, parent=None, index=0, pass_=0),
        lambda b: b.add_op("op", pass_=None),
        lambda b: b.add_op("op", 0),
    ],
)
def test_an_id_that_is_no_id_is_a_type_error(call):
    with pytest.raises(TypeError):
        call(StepBuilder())


def test_finish_names_the_record_and_field_and_keeps_the_builder():
    b = build_with_everything()
    b.add_op("aten.mm.default", pass_=0, inputs=[0, 77], outputs=[])
    for _ in range(2):
        with pytest.raises(Error) as caught:
            b.finish()
        assert caught.value.place == "ops[4].inputs[1]"
        assert caught.value.got == "77"


def test_finish_names_the_event_that_is_out_of_order():
    b = build_with_everything()
    b.free(1)
    with pytest.raises(Error) as caught:
        b.finish()
    assert caught.value.place == "events[24].free"


def test_a_builder_is_empty_after_finish():
    b = build_with_everything()
    first = b.finish()
    assert len(b.finish().events) == 0
    assert b.add_module(None, "", "Model") == 0
    assert len(first.modules) == 2


numbers = st.integers(-(2**63), 2**63 - 1)
plain = st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=20)
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3), max_leaves=8)


def depth(value) -> int:
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def same(a, b) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and repr(a) == repr(b)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=8), values.filter(lambda v: depth(v) <= 4), min_size=1, max_size=4))
def test_any_arguments_survive_builder_and_file(args):
    b = StepBuilder()
    pass_ = b.add_pass("forward")
    op = b.add_op("aten.op.default", pass_=pass_, args=b.intern_args(args))
    b.phase(pass_)
    b.begin(op)
    b.end(op)
    read = Step.parse(b.finish().text()).ops[0].args
    assert list(read) == list(args)
    assert all(same(read[name], args[name]) for name in args)
