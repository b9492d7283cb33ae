"""One checkpointed run of a function, on PyTorch's non-reentrant checkpoint."""

from __future__ import annotations

import weakref

import torch.utils.checkpoint as torch_checkpoint


class _Matcher:
    """Stands in for the frame's own comparison of forward and recompute, and words its error."""

    def __init__(self, frame, worded) -> None:
        self._frame = weakref.ref(frame)
        self._worded = worded

    def __call__(self, graph_task) -> None:
        frame = self._frame()
        try:
            type(frame).check_recomputed_tensors_match(frame, graph_task)
        except torch_checkpoint.CheckpointError as error:
            raise self._worded(error) from error


def run(function, args: tuple, held: tuple, *, preserve_rng: bool, early_stop: bool, context_fn, worded):
    """`function(*args)` now, and `function(*held)` when backward needs what it saved; its result, and how many tensors autograd has
    saved in it. `worded` turns PyTorch's error about a recompute that went another way into one of ours."""
    generator = torch_checkpoint._checkpoint_without_reentrant_generator(
        function, preserve_rng, context_fn or torch_checkpoint.noop_context_fn, "default", False, early_stop, *held
    )
    next(generator)
    frame = generator.gi_frame.f_locals.get("new_frame") if generator.gi_frame is not None else None
    if frame is not None:
        frame.check_recomputed_tensors_match = _Matcher(frame, worded)
        packed = frame.weak_holders
        del frame
    else:
        packed = []
    try:
        result = function(*args)
    except BaseException as error:
        generator.throw(error)
        raise
    try:
        next(generator)
    except StopIteration:
        return result, len(packed)
    raise RuntimeError("torch.utils.checkpoint did not end after the forward")
