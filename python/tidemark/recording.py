"""Recording one training step of a PyTorch model.

    step = tidemark.capture(step_fn, model, optimizer)

`step_fn()` runs one whole training step in your own words: zero_grad, forward, loss, backward, optimizer step. It is called
**twice**, and the second run is recorded: by then optimizer state exists and the gradients of the step before are there to
be cleared, as in every later step. In mode "auto" it is called twice more when fake tensors cannot follow it. So a data
iterator inside it advances by two batches (or four); schedulers and gradient scalers that `step_fn` refers to are put back
afterwards, as are the model, the optimizer, gradients and random states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ._core import Step

if TYPE_CHECKING:
    import torch


def capture(
    step_fn: Callable[[], Any],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    mode: str = "auto",
    target: str = "cpu",
    workspace: bool = True,
    ignore_checkpointing: bool = False,
) -> Step:
    """Records one step.

    mode: "fake" runs it on tensors without data (no weights are read, no memory is used), "real" on real ones, and "auto"
    on fake ones, or on real ones when something depends on data, with a warning that says what and where.
    target: "cpu" records what this machine runs; "cuda", or a device such as "h100-sxm" (`tidemark devices` lists them),
    what PyTorch would run there: its kernels for attention, dropout and optimizers. The step's notes say which choices were
    imitated.
    workspace: also measure, in a process of its own, what kernels allocate for themselves; it is then `step.workspace`.
    ignore_checkpointing: record a model that checkpoints itself as if it did not.

    Raises `CaptureError` when the step cannot be recorded. Model, optimizer, gradients and random state are put back, also
    on error.
    """
    from ._capture import session

    return session.capture(
        step_fn, model, optimizer, mode, session.Options(target, workspace, ignore_checkpointing)
    )


def capture_batch(
    model: torch.nn.Module,
    batch: Any,
    loss: Callable[..., torch.Tensor] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    **options: Any,
) -> Step:
    """Records the usual step on one batch.

    The model gets `batch`: a dict as keyword arguments, a tuple or list as arguments, anything else as the one argument.
    `loss` gets the model's output; without it, the output's `loss` is used, or the output itself. Without an optimizer a
    step has none.
    """

    def step_fn() -> None:
        if optimizer is not None:
            optimizer.zero_grad()
        else:
            model.zero_grad()
        if isinstance(batch, dict):
            output = model(**batch)
        elif isinstance(batch, (list, tuple)):
            output = model(*batch)
        else:
            output = model(batch)
        value = loss(output) if loss is not None else getattr(output, "loss", output)
        value.backward()
        if optimizer is not None:
            optimizer.step()

    return capture(step_fn, model, optimizer, **options)


class Recording:
    """For code that owns its loop:

        with tidemark.Recording(model, optimizer) as recording:
            for batch in loader:
                train_step(batch)
                if recording.end_step():
                    break
        step = recording.step

    Inside, the model is on fake tensors (or on real ones, with mode="real"); the second step is recorded.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        mode: str = "fake",
        target: str = "cpu",
        workspace: bool = True,
        ignore_checkpointing: bool = False,
    ) -> None:
        from ._capture import checks, session

        options = session.Options(target, workspace, ignore_checkpointing)
        checks.arguments(lambda: None, model, optimizer, mode, options.target)
        self._session = session.Session(model, optimizer, mode == "real", options)

    def __enter__(self) -> Recording:
        self._session.__enter__()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        from ._capture import session

        self._session.__exit__(kind, error, traceback)
        if isinstance(error, Exception) and not self._session.real:
            session.raise_explained(error, self._session.options)

    def end_step(self) -> bool:
        """Says that a step has ended. True when the recording is complete: leave the loop."""
        return self._session.end_step()

    @property
    def step(self) -> Step:
        """The recorded step, after the `with` block."""
        return self._session.result()
