"""Tidemark plans activation checkpointing: the cheapest recomputation whose peak memory stays under a budget.

Everything it says is a function of one recorded training step, the `Step`:

    step = tidemark.capture(step_fn, model, optimizer)
    timeline = tidemark.simulate(step, tidemark.Plan.policy(step, "full"))
    print(timeline.peak_bytes, timeline.by_category)
    result = tidemark.plan(step, budget="8GB", device="cpu")
    print(result.termination, result.peak_bytes, result.recompute_ms)

PyTorch is imported only by the functions that use it, never by `import tidemark`.
"""

from ._apply.errors import DriftError
from ._capture.errors import CaptureError
from ._core import (
    ALIAS_KINDS,
    BINDING_KINDS,
    DTYPES,
    EVENT_KINDS,
    OP_FLAGS,
    PASS_KINDS,
    REGION_KINDS,
    ROLES,
    Binding,
    Budget,
    Call,
    Device,
    Error,
    Explanation,
    Frontier,
    Group,
    Layout,
    Module,
    Node,
    Note,
    Op,
    Pass,
    Plan,
    PlanFiles,
    PlanResult,
    Region,
    Save,
    Source,
    Step,
    StepBuilder,
    StepCost,
    Storage,
    Table,
    Tensor,
    Timeline,
    WorkspaceTable,
    __version__,
    devices,
    find_device,
    format_bytes,
    format_bytes_exact,
    groups,
    models,
    parse_budget,
    parse_bytes,
    price,
    reference_tracker,
    simulate,
    workspace_key,
)
from .applying import audit, check_ranks, fit, remove
from .calibration import calibrate
from .native_models import native
from .planning import frontier, plan
from .reference import ReferenceTracker, module_info
from .recording import Recording, capture, capture_batch

__all__ = [
    "ALIAS_KINDS",
    "BINDING_KINDS",
    "Binding",
    "Budget",
    "Call",
    "CaptureError",
    "DTYPES",
    "Device",
    "DriftError",
    "EVENT_KINDS",
    "Error",
    "Explanation",
    "Frontier",
    "Group",
    "Layout",
    "Module",
    "Node",
    "Note",
    "OP_FLAGS",
    "Op",
    "PASS_KINDS",
    "Pass",
    "Plan",
    "PlanFiles",
    "PlanResult",
    "REGION_KINDS",
    "ROLES",
    "Recording",
    "ReferenceTracker",
    "Region",
    "Save",
    "Source",
    "Step",
    "StepBuilder",
    "StepCost",
    "Storage",
    "Table",
    "Tensor",
    "Timeline",
    "WorkspaceTable",
    "__version__",
    "audit",
    "calibrate",
    "capture",
    "capture_batch",
    "check_ranks",
    "devices",
    "find_device",
    "fit",
    "format_bytes",
    "format_bytes_exact",
    "frontier",
    "groups",
    "models",
    "module_info",
    "native",
    "parse_budget",
    "parse_bytes",
    "plan",
    "price",
    "reference_tracker",
    "remove",
    "simulate",
    "workspace_key",
]

# Tracebacks and help() name a class by where users find it.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
del _name
