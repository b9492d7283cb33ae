"""What `import tidemark` gives and what it leaves alone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tidemark

pytestmark = pytest.mark.fast


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout


def test_importing_tidemark_does_not_import_torch_or_numpy():
    code = "import sys, tidemark; print([m for m in ('torch', 'numpy') if m in sys.modules])"
    assert run_python(code) == "[]\n"


def test_version_is_that_of_the_library(root):
    header = (root / "tidemark/version.h").read_text()
    assert tidemark.__version__ == re.search(r'#define TIDEMARK_VERSION "(.+)"', header).group(1)


def test_every_exported_name_exists_and_classes_and_functions_are_documented():
    for name in tidemark.__all__:
        exported = getattr(tidemark, name)
        if callable(exported):
            assert exported.__doc__, name
    assert tidemark.__all__ == sorted(tidemark.__all__)


def test_classes_name_the_package_and_not_the_extension():
    assert repr(tidemark.Step) == "<class 'tidemark.Step'>"
    assert repr(tidemark.Error) == "<class 'tidemark.Error'>"


def test_type_stub_is_shipped_and_is_the_approved_one(golden):
    package = Path(tidemark.__file__).parent
    assert (package / "py.typed").exists()
    golden("_core.pyi.ref", (package / "_core.pyi").read_text(encoding="utf-8"))
