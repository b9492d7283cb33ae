"""Every public name of PyTorch's tools is here, with the same parameters and defaults."""

import enum
import importlib
import inspect

import pytest

torch = pytest.importorskip("torch")

MODULES = (
    "common_utils",
    "fake_collectives",
    "ilp_utils",
    "mem_tracker",
    "memory_tracker",
    "mod_tracker",
    "runtime_estimator",
    "sac_estimator",
    "sac_ilp",
)
# Names that differ on purpose, with the reason; docs/compat.md lists them.
DELIBERATE: dict[str, str] = {}
SPECIAL = ("__init__", "__call__", "__enter__", "__exit__")


def _modules(name):
    try:
        theirs = importlib.import_module(f"torch.distributed._tools.{name}")
    except ImportError as error:
        pytest.skip(f"this PyTorch has no {name}: {error}")
    return theirs, importlib.import_module(f"tidemark.compat.{name}")


def _own_names(module):
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _parameters(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def _function(member):
    return member.__func__ if isinstance(member, (staticmethod, classmethod)) else member


@pytest.mark.parametrize("name", MODULES)
def test_signatures(name):
    theirs, ours = _modules(name)
    names = _own_names(theirs)
    assert names
    different = []
    for public in names:
        if f"{name}.{public}" in DELIBERATE:
            continue
        their, our = getattr(theirs, public), getattr(ours, public, None)
        if our is None:
            different.append(f"{public} is missing")
        elif inspect.isclass(their):
            different += [f"{public}.{text}" for text in _class_differences(their, our)]
        elif _parameters(their) != _parameters(our):
            different.append(f"{public}{inspect.signature(our)}")
    assert different == []


def _class_differences(their, our):
    if issubclass(their, enum.Enum):
        members = [(member.name, member.value) for member in their]
        return [] if members == [(member.name, member.value) for member in our] else ["members"]
    different = []
    if not issubclass(their, dict) and _parameters(their) != _parameters(our):  # a TypedDict has no signature
        different.append(f"__init__{inspect.signature(our)}")
    fields = list(getattr(their, "__annotations__", {}))
    public = [field for field in fields if not field.startswith("_")]
    if [field for field in public if field not in getattr(our, "__annotations__", {})]:
        different.append(f"fields: {public}")
    for name, member in vars(their).items():
        if name.startswith("_") and name not in SPECIAL or name in fields:
            continue
        function = _function(member)
        if isinstance(member, property):
            if not isinstance(vars(our).get(name), property):
                different.append(f"{name} is no property")
        elif inspect.isfunction(function):
            mine = _function(inspect.getattr_static(our, name, None))
            if not inspect.isfunction(mine) or _parameters(function) != _parameters(mine):
                different.append(name)
            elif type(member) is not type(inspect.getattr_static(our, name)):
                different.append(f"{name} is bound otherwise")
    return different


def test_private_names_that_the_reference_tests_use():
    from tidemark.compat.mem_tracker import _MemRefType, _ModState

    theirs, _ = _modules("mem_tracker")
    assert {s.name: s.value for s in _ModState} == {s.name: s.value for s in theirs._ModState}
    assert {s.name: s.value for s in _MemRefType} == {s.name: s.value for s in theirs._MemRefType}


# Private, and imported by scripts all the same.
PRIVATE = {
    "mem_tracker": (
        "_get_mem_divisor",
        "_rounding_fn",
        "_print_snapshot",
        "_print_snapshot_tabular",
        "_print_state_snapshots",
        "_print_state_snapshots_tabular",
    ),
    "sac_estimator": ("_SACMetadata", "_SACModMetadata"),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_private_names_that_scripts_import(name):
    theirs, ours = _modules(name)
    for private in PRIVATE[name]:
        expected = [p for p in _parameters(getattr(theirs, private))]
        assert _parameters(getattr(ours, private))[: len(expected)] == expected, private


def test_private_values_that_scripts_import():
    theirs, ours = _modules("mem_tracker")
    assert [member.name for member in ours._UpdateType] == [member.name for member in theirs._UpdateType]
    assert [ours._rounding_fn(3 << 19, divisor, 1) for divisor in (1, 1 << 20)] == [3 << 19, 1.5]
    theirs, ours = _modules("sac_estimator")
    assert ours.OPS_TO_ALWAYS_SKIP == theirs.OPS_TO_ALWAYS_SKIP


def test_snapshots_are_printed_as_the_tracker_prints_them(capsys):
    _, ours = _modules("mem_tracker")
    x = torch.ones(256)  # 1 KiB
    tracker = ours.MemTracker()
    tracker.track_external(x)
    snapshot = tracker.get_tracker_snapshot()
    ours._print_snapshot(snapshot, "KiB")
    printed = capsys.readouterr().out
    assert "Device: cpu" in printed and "\tTotal: 1.00 KiB" in printed
    tracker.display_snapshot("current", "KiB")
    assert capsys.readouterr().out == printed
    ours._print_state_snapshots_tabular({ours._ModState.PRE_FW: [snapshot]}, "KiB")
    assert "Pre-Forward #1" in capsys.readouterr().out
    ours._print_snapshot({}, "B")
    assert capsys.readouterr().out == "No memory tracked.\n"


def test_operators_that_are_always_skipped_are():
    """The set that scripts import is what the estimator does."""
    from tidemark import _core
    from tidemark._capture.op_facts import facts_of
    from tidemark.compat._settings import settings
    from tidemark.compat.sac_estimator import OPS_TO_ALWAYS_SKIP

    for func in OPS_TO_ALWAYS_SKIP:
        _, _, is_skipped = _core.sac_op_traits(func._overloadpacket.__name__, settings().rules)
        assert is_skipped or facts_of(func).ignored, func
