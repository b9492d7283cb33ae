"""tidemark validate."""

import pytest

pytestmark = pytest.mark.fast


@pytest.fixture
def broken(step, tmp_path):
    """A step whose first op reads a tensor that does not exist, and the line of that op."""
    step.sections["ops"][0][5] = [33]  # tensors are 0 to 32
    path = tmp_path / "broken.step.jsonl"
    path.write_text(step.text())
    line = next(i for i, text in enumerate(step.text().splitlines(), 1) if text.startswith('{"section":"ops"')) + 1
    return str(path), line


def test_a_valid_step_is_named_with_its_fingerprint(cli, example):
    fingerprint = cli.json("inspect", example)["fingerprint"]
    assert cli("validate", example).stdout == f"{example}: valid step, 27 ops, fingerprint {fingerprint}\n"


def test_the_next_file_is_checked_after_a_bad_one(cli, example, broken):
    path, line = broken
    result = cli("validate", path, "no/such/file", example)
    assert result.returncode == 1
    verdicts = result.stdout.splitlines()
    assert verdicts[:2] == [f"{path}: not a valid step", "no/such/file: not a valid step"]
    assert verdicts[2].startswith(f"{example}: valid step")
    reasons = result.stderr.splitlines()
    assert len(reasons) == 2
    assert reasons[0].startswith(f"tidemark: error: [{path}, line {line}: ops[0].inputs[0]] ")
    assert reasons[1].startswith("tidemark: error: [no/such/file] ")


def test_json_is_a_list_with_one_object_per_file(cli, example, broken):
    path, line = broken
    good, bad = cli.json("validate", example, path, code=1)
    assert good == {"file": example, "valid": True, "ops": 27,
                    "fingerprint": cli.json("inspect", example)["fingerprint"]}
    assert list(bad) == ["file", "valid", "error"]
    assert (bad["file"], bad["valid"]) == (path, False)
    assert bad["error"]["kind"] == "input"
    assert bad["error"]["place"] == f"{path}, line {line}: ops[0].inputs[0]"
    assert cli("validate", path, "--json").stderr == cli("validate", path).stderr


def test_one_valid_file_is_a_list_too(cli, example):
    assert len(cli.json("validate", example)) == 1


def test_a_file_may_be_called_like_a_command(cli, example, root, tmp_path):
    (tmp_path / "inspect").write_text((root / example).read_text())
    result = cli.shell(f"cd {tmp_path} && build/tidemark validate inspect")
    assert result.returncode == 0
    assert result.stdout.startswith("inspect: valid step")
