"""What is true of an op by its name and schema alone, worked out once per overload."""

from __future__ import annotations

import torch

# Ops that read nothing but metadata, or make another name for the same tensor. Selective checkpointing does not count
# them either (torch.utils.checkpoint.SAC_IGNORED_OPS).
_IGNORED = {
    "prim.device.default",
    "prim.layout.default",
    "aten.detach.default",
    "aten.is_contiguous.default",
    "aten.is_contiguous.memory_format",
    "aten.is_strides_like_format.default",
    "aten.is_non_overlapping_and_dense.default",
    "aten.size.default",
    "aten.sym_size.default",
    "aten.sym_size.int",
    "aten.stride.default",
    "aten.sym_stride.default",
    "aten.sym_stride.int",
    "aten.storage_offset.default",
    "aten.sym_storage_offset.default",
    "aten.numel.default",
    "aten.sym_numel.default",
    "aten.dim.default",
}

# Ops that decide where values go. Run again on other bits they could decide otherwise.
_ROUTING = {"aten.topk", "aten.sort", "aten.argsort", "aten.argmax", "aten.argmin", "aten.multinomial"}

# Arguments that an op writes to, in training, although its schema does not say so.
_UNDECLARED = {
    "aten.native_batch_norm": ("running_mean", "running_var"),
    "aten.cudnn_batch_norm": ("running_mean", "running_var"),
    "aten.miopen_batch_norm": ("running_mean", "running_var"),
}

# Arguments that switch the randomness of an op off.
_PROBABILITIES = ("dropout_p", "dropout")
_SWITCHES = ("train", "training")
_GENERATORS = ("Generator", "Optional[Generator]")


class OpFacts:
    """Facts about one overload."""

    __slots__ = (
        "name",
        "names",
        "mutated",
        "undeclared",
        "random",
        "generator",
        "probability",
        "default_probability",
        "switch",
        "flags",
        "ignored",
        "is_device",
        "is_item",
        "is_lift",
        "is_layout_only",
        "group",
        "number_slots",
    )

    def __init__(self, func) -> None:
        self.name = str(func)
        schema = func._schema
        arguments = schema.arguments
        self.names = tuple(a.name for a in arguments)
        self.mutated = tuple(
            (i, a.name) for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write
        )
        self.ignored = self.name in _IGNORED or func.namespace == "profiler"
        self.is_device = self.name == "prim.device.default"
        self.is_item = self.name == "aten._local_scalar_dense.default"
        self.is_lift = self.name == "aten.lift_fresh.default"  # a tensor that Python made from numbers comes to light
        packet = self.name.rpartition(".")[0]
        self.undeclared = _UNDECLARED.get(packet, ())
        tags = func.tags
        self.random = torch.Tag.nondeterministic_seeded in tags
        self.generator = next(((i, a.name) for i, a in enumerate(arguments) if str(a.type) in _GENERATORS), None)
        self.probability = next((n for n in self.names if n in _PROBABILITIES), None)
        if packet == "aten.native_dropout":
            self.probability = "p"
        # What PyTorch does not pass on to us because it is the default.
        self.default_probability = next((a.default_value for a in arguments if a.name == self.probability), None)
        self.switch = next((n for n in self.names if n in _SWITCHES), None)
        flags = []
        namespace = func.namespace
        self.group = None
        if namespace in ("c10d", "_c10d_functional", "c10d_functional"):
            self.group = next((n for n in self.names if n in ("group_name", "process_group")), None)
            if self.group is not None:
                flags += ["collective", "must_save"]
            elif not packet.endswith(".wait_tensor"):  # which talks to nobody, and returns what it is given
                flags += ["opaque", "must_save"]
        elif namespace not in ("aten", "prims", "prim"):
            flags.append("opaque")
        if packet in _ROUTING:
            flags += ["routing", "must_save"]
        if torch.Tag.dynamic_output_shape in tags or torch.Tag.data_dependent_output in tags:
            flags += ["data_dependent", "must_save"]
        if self.is_item:
            flags.append("host_copy")
        self.flags = tuple(flags)
        # Whether the layouts of what it returns follow from its arguments and their layouts. (Of index.Tensor they do unless a
        # mask selects.)
        self.is_layout_only = (
            namespace == "aten"
            and (not self.ignored or packet == "aten.detach")
            and not self.is_item
            and not self.is_lift
            and torch.Tag.inplace_view not in tags
            and ("data_dependent" not in flags or packet == "aten.index")
        )
        # Positions where a Python number stands for a tensor: PyTorch makes a small tensor of it.
        self.number_slots = tuple(
            i for i, a in enumerate(arguments) if str(a.type) == "Tensor" and a.alias_info is None
        )

    def own_generator(self, args, kwargs):
        """The generator of the program's own that it draws from; None: one of PyTorch's, or none."""
        if self.generator is None:
            return None
        i, name = self.generator
        found = args[i] if i < len(args) else kwargs.get(name)
        return None if found is None or found._cdata in _pytorchs() else found

    def is_random(self, given: dict) -> bool:
        """Whether it draws numbers, by its name and what it was given."""
        if not self.random:
            return False
        if self.probability is not None and given.get(self.probability, self.default_probability) in (0, 0.0):
            return False
        return self.switch is None or given.get(self.switch, True) is not False


def _pytorchs() -> tuple:
    """Generators that a checkpoint puts back by itself. An op is given one in another Python object than the program's."""
    return (torch.default_generator._cdata, *(generator._cdata for generator in torch.cuda.default_generators))


_facts: dict = {}


def facts_of(func) -> OpFacts:
    facts = _facts.get(func)
    if facts is None:
        facts = _facts[func] = OpFacts(func)
    return facts
