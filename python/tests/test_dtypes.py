"""Our element types against PyTorch's: PyTorch is the judge."""

import pytest

import tidemark

# PyTorch warns that complex32 is experimental and that quantized types are deprecated when a tensor of them is made.
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf", "ignore:torch.quantize")


def torch_dtypes():
    import torch

    return {value for value in vars(torch).values() if isinstance(value, torch.dtype)}


def can_hold_values(dtype) -> bool:
    """Whether numbers can be put into a tensor of this type: without that nothing is trained with it."""
    import torch

    try:
        torch.zeros(2).to(dtype)
    except (RuntimeError, NotImplementedError):
        return False
    return True


def test_every_dtype_of_ours_is_one_of_pytorchs_with_the_same_size():
    import torch

    for name, bytes in tidemark.DTYPES.items():
        dtype = getattr(torch, name)
        assert str(dtype) == f"torch.{name}"
        assert dtype.itemsize == bytes, name
        assert torch.empty(3, dtype=dtype).untyped_storage().nbytes() == 3 * bytes, name


def test_every_dtype_that_can_hold_a_training_tensor_is_known():
    usable = {str(dtype).removeprefix("torch.") for dtype in torch_dtypes() if can_hold_values(dtype)}
    assert usable <= set(tidemark.DTYPES)


def test_what_we_know_beyond_that_is_the_packed_type_that_only_kernels_fill():
    usable = {str(dtype).removeprefix("torch.") for dtype in torch_dtypes() if can_hold_values(dtype)}
    assert set(tidemark.DTYPES) - usable == {"float4_e2m1fn_x2"}
