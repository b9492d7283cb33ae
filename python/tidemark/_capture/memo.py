"""What ops on fake tensors return, remembered: equal arguments of equal layouts give results of equal layouts.

The fake mode has such a memory too, but describes every argument anew, at several times the cost of looking up what the
recorder has described anyway. Only what surely depends on nothing else is remembered; the rest is asked each time.
"""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .arguments import layouts_of
from .op_facts import OpFacts

NOT_KNOWN = object()
_NEVER = object()
_GIVEN, _VIEW, _FRESH = 0, 1, 2
_key_set = torch._C._dispatch_key_set
_MASKS = (torch.bool, torch.uint8, torch.int8)


class Memo:
    """Of one session and one fake mode."""

    def __init__(self, fakes) -> None:
        self._mode = fakes.mode
        self._device = torch.device("cpu")
        self._recipes: dict = {}
        self._is_off = False

    def key(self, facts: OpFacts, arguments: tuple, tensors: list, layouts: tuple):
        """What the result depends on, or None if that is not known."""
        if self._is_off or not facts.is_layout_only:
            return None
        for t in tensors:
            if t.constant is not None:  # a value the fake mode knows: the result may have one too
                return None
        return arguments, layouts, torch.get_default_dtype(), torch.is_inference_mode_enabled()

    def result(self, key, tensors: list):
        """What the op returns, or NOT_KNOWN."""
        recipe = self._recipes.get(key, _NEVER)
        if recipe is _NEVER:
            return NOT_KNOWN
        kind, outs = recipe
        guard = torch._C._DisableTorchDispatch()
        made = [o if o is None else self._made(o, tensors) for o in outs]
        del guard
        return made[0] if kind is None else kind(made)

    def keep(self, key, func, tensors: list, layouts: tuple, out) -> None:
        if key not in self._recipes:
            self._recipes[key] = self._recipe(func, tensors, layouts, out)

    def _made(self, recipe: tuple, tensors: list):
        way = recipe[0]
        if way == _GIVEN:
            return tensors[recipe[1]]
        if way == _FRESH:
            _, dtype, size, stride = recipe
            meta = torch.empty_strided(size, stride, dtype=dtype, device="meta")
        else:
            _, position, dtype, size, stride, offset = recipe
            meta = torch.empty(0, dtype=dtype, device="meta")
            meta.set_(tensors[position].untyped_storage(), offset, size, stride)
        return FakeTensor(self._mode, meta, self._device)

    def _recipe(self, func, tensors: list, layouts: tuple, out):
        if any(t.dtype.is_complex for t in tensors):
            self._is_off = True  # conjugates and negatives are flags of tensors, also of real ones made from complex ones
            return _NEVER
        if func is torch.ops.aten.index.Tensor and any(t.dtype in _MASKS for t in tensors[1:]):
            return _NEVER  # as many as the mask selects
        if layouts_of(tensors) != layouts:
            return _NEVER  # it changed a tensor's layout
        kind = type(out)
        if kind is not list and kind is not tuple:
            kind, out = None, [out]
        recipes = []
        fresh: set = set()
        for t in out:
            recipe = None if t is None else self._recipe_of(t, tensors, fresh)
            if recipe is _NEVER:
                return _NEVER
            recipes.append(recipe)
        return kind, recipes

    def _recipe_of(self, t, tensors: list, fresh: set):
        if type(t) is not FakeTensor or t.constant is not None or t.dtype.is_complex:
            return _NEVER
        same = [i for i, given in enumerate(tensors) if given is t]
        if same:
            return (_GIVEN, same[0]) if len(same) == 1 else _NEVER  # another time they may be two
        if t.fake_device != self._device or t.layout != torch.strided or t.requires_grad:
            return _NEVER
        storage = t.untyped_storage()
        bases = [i for i, given in enumerate(tensors) if given.untyped_storage()._cdata == storage._cdata]
        if len(bases) > 1:
            return _NEVER
        if bases:
            recipe = (_VIEW, bases[0], t.dtype, t.size(), t.stride(), t.storage_offset())
        elif storage._cdata in fresh or t.storage_offset() != 0:
            return _NEVER
        else:
            fresh.add(storage._cdata)
            recipe = (_FRESH, t.dtype, t.size(), t.stride())
        guard = torch._C._DisableTorchDispatch()
        again = self._made(recipe, tensors)
        del guard
        is_same = again.untyped_storage().nbytes() == storage.nbytes() and _key_set(again) == _key_set(t)
        return recipe if is_same else _NEVER
