"""The label `cuda` is there while these tests run, and at no other time: the others see PyTorch as it is."""

import pytest


def pytest_collection_finish():
    _label(False)


@pytest.fixture(scope="package", autouse=True)
def label():
    _label(True)
    yield
    _label(False)


def _label(wanted: bool) -> None:
    try:
        from tidemark import compat
    except ImportError:  # no torch
        return
    compat.label_cuda(wanted)
