"""tidemark devices: the list, one device with its sources, and files of one's own."""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data/devices"


def test_lists_every_file(cli):
    result = cli("devices")
    assert (result.returncode, result.stderr) == (0, "")
    listed = [line.split()[0] for line in result.stdout.splitlines()[1:-1]]
    assert listed == sorted(path.stem for path in DATA.glob("*.json"))
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_json_has_every_figure_with_its_source(cli):
    for device in cli.json("devices"):
        file = json.loads((DATA / f"{device['name']}.json").read_text())
        for field in ("memory_bytes", "bandwidth_bytes_per_s", "l2_bytes", "overhead_bytes"):
            value, source = file[field]
            assert device[field] == {"value": value, "source": file["sources"][source]}
        assert device["peak_flops"].keys() == file["peak_flops"].keys()


def test_one_device_by_alias_and_by_file(cli, tmp_path):
    assert cli.json("devices", "NVIDIA H100 NVL")["name"] == "h100-nvl"
    path = tmp_path / "mine.json"
    text = (DATA / "t4.json").read_text().replace('"name": "t4"', '"name": "mine"')
    path.write_text(text)
    assert cli.json("devices", path)["name"] == "mine"
    assert "mine: NVIDIA T4 16 GB" in cli("devices", path).stdout
    path.write_text(text.replace("16000000000", "0"))
    result = cli("devices", path)
    assert (result.returncode, result.stdout) == (1, "")
    assert f"[{path}: memory_bytes] the number is out of range" in result.stderr


def test_shows_the_network(cli, tmp_path):
    file = json.loads((DATA / "t4.json").read_text())
    path = tmp_path / "mine.json"
    file.pop("network", None)
    path.write_text(json.dumps(file))
    assert cli.json("devices", path)["network"] is None and "network" not in cli("devices", path).stdout
    file["network"] = {"kind": "roce", "bytes_per_s": [12500000000, "t4"], "latency_ns": [9000, "latency"]}
    path.write_text(json.dumps(file))
    network = cli.json("devices", path)["network"]
    assert network["kind"] == "roce"
    assert network["bytes_per_s"] == {"value": 12500000000, "source": file["sources"]["t4"]}
    assert network["latency_ns"]["value"] == 9000
    text = " ".join(cli("devices", path).stdout.split())
    assert "network roce 12.5 GB/s" in text and "network latency 9,000 ns" in text


def test_an_unknown_device_is_an_error_with_the_nearest(cli):
    result = cli("devices", "h100-smx")
    assert (result.returncode, result.stdout) == (1, "")
    assert "try: h100-sxm" in result.stderr


def test_a_file_needs_no_slash(cli, tmp_path):
    """`--device mycard` is the file of that name, unless a built-in device has it."""
    file = json.loads((ROOT / "data/devices/t4.json").read_text()) | {"name": "mine"}
    for name in ("mycard", "t4"):
        (tmp_path / name).write_text(json.dumps(file))
    step = str(ROOT / "examples/steps/two_layer_mlp.step.jsonl")

    def device_of(name):
        run = subprocess.run([cli.binary, "time", step, "--device", name, "--json"], cwd=tmp_path, env=cli.env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)["device"]

    assert device_of("mycard") == "mine"
    assert device_of("t4") == "t4"
