"""Says how much a pip installation would fetch, measured file by file; prints nothing when that is little.

Reads the file that `pip install --dry-run --report` writes, which names the files but not their sizes.
"""

import argparse
import json
import os
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

CPU_HINT = (
    "  PyTorch's builds for CPUs only are a small part of that: PyTorch's installation page gives the address of\n"
    "  their package index; stop here (Ctrl-C) and run again with --extra-index-url ADDRESS, or with\n"
    "  --find-links FOLDER for wheels you already have."
)


def size_of(url: str) -> int | None:
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            return Path(unquote(parts.path)).stat().st_size
        certificates = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
        with urlopen(Request(url, method="HEAD"), timeout=20, context=certificates) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, TypeError, ValueError):
        return None


def in_megabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def announcement(report: dict, notice_bytes: float) -> str:
    files = [(item["metadata"]["name"], item["download_info"]["url"]) for item in report["install"]]
    with ThreadPoolExecutor(8) as pool:
        sizes = list(pool.map(lambda file: size_of(file[1]), files))
    known = sorted(((size, name) for size, (name, _) in zip(sizes, files) if size is not None), reverse=True)
    unknown = [name for size, (name, _) in zip(sizes, files) if size is None]
    total = sum(size for size, _ in known)
    if total <= notice_bytes and not unknown:
        return ""
    largest = ", ".join(f"{name} {in_megabytes(size)}" for size, name in known[:4])
    text = f"  about to fetch {in_megabytes(total)} in {len(files)} files for .venv"
    text += f" (largest: {largest})" if largest else ""
    if unknown:
        text += f"\n  the server does not tell the size of {len(unknown)} of them: {', '.join(unknown[:6])}"
    if any(name.lower().startswith(("nvidia", "cuda")) for name, _ in files):
        text += "\n" + CPU_HINT
    return text


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("report", type=Path)
    arguments.add_argument("--notice-mb", type=float, required=True)
    options = arguments.parse_args()
    message = announcement(json.loads(options.report.read_text()), options.notice_mb * 1e6)
    if message:
        print(message)
