"""Prints the pins (name==version lines) of the given requirement files that this Python does not have.

RECORD is the last file pip writes for a package; without it the package is half installed.
"""

import re
import sys
from importlib import metadata


def is_installed(name: str, version: str) -> bool:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    # "2.13.0+cpu" is a build of 2.13.0.
    return found.version.split("+")[0] == version and found.read_text("RECORD") is not None


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            requirement = line.split("#")[0].strip()
            if not requirement:
                continue
            pin = re.fullmatch(r"([A-Za-z0-9._-]+)==([^ ;]+)", requirement)
            if pin is None:
                sys.exit(f"{path}: expected name==version, got {requirement!r}")
            if not is_installed(*pin.groups()):
                print(requirement)
