"""Files that are no steps: each gets one line on stderr that says where and what, and exit code 1."""

import os
import random
import resource

import pytest

pytestmark = pytest.mark.fast


def refusal(cli, path, **options) -> str:
    """What is said about the file, which must be the same from both commands."""
    result = cli("inspect", path, **options)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("tidemark: error: ")
    assert cli("validate", path, **options).stderr == result.stderr
    return result.stderr


@pytest.mark.parametrize("name", ["no/such/file.step.jsonl", "no-such-model-at-all", "gpt2/config.json"])
def test_a_name_that_is_no_file_is_told_what_a_step_may_be(cli, name):
    message = refusal(cli, name)
    assert f"[{name}] there is no such file or model" in message
    assert "expected a step file, plain or .zst, the name of a built-in model, or a Hugging Face config.json" in message
    assert "try: check the path, or see tidemark models for names" in message


def test_an_empty_name_is_refused(cli):
    assert "[STEP] the name is empty" in refusal(cli, "")


def test_a_folder_is_refused(cli, tmp_path):
    assert f"[{tmp_path}] this is a folder" in refusal(cli, tmp_path)


def test_a_link_to_nothing_is_refused(cli, tmp_path):
    (tmp_path / "link").symlink_to("nothing")
    assert "there is no such file" in refusal(cli, tmp_path / "link")


def test_what_the_system_refuses_to_open_is_said_in_its_words(cli):
    assert "cannot open this file: File name too long" in refusal(cli, "x" * 300)


def test_an_empty_file_is_refused(cli, tmp_path):
    path = tmp_path / "empty.step.jsonl"
    path.touch()
    assert "the file is empty" in refusal(cli, path)


def test_a_file_cut_anywhere_is_refused(cli, root, example, tmp_path):
    whole = (root / example).read_bytes()
    path = tmp_path / "cut.step.jsonl"
    for length in (1, len(whole) // 3, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert f"[{path}, " in refusal(cli, path)


def test_a_file_cut_between_lines_says_what_is_left(cli, root, example, tmp_path):
    lines = (root / example).read_text().splitlines(keepends=True)
    path = tmp_path / "cut.step.jsonl"
    path.write_text("".join(lines[:3]))  # the format, the header of two rows of meta, one of them
    assert "[{}, after line 3] the file ends too early; expected 1 more row".format(path) in refusal(cli, path)


def test_a_config_without_a_type_is_refused(cli, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{\n  "architectures": ["LlamaForCausalLM"]\n}\n')
    assert f"[{path}: model_type] the key is missing" in refusal(cli, path)


def test_a_step_is_no_model(cli, example, tmp_path):
    done = cli("capture", example, "-o", tmp_path / "again.step.jsonl")
    assert done.returncode == 1
    assert "this is a step that was recorded already; expected a built-in model" in done.stderr


@pytest.mark.parametrize("model, option", [("gpt2", "--image"), ("resnet18", "--seq")])
def test_a_size_that_the_model_does_not_have_is_refused(cli, model, option):
    done = cli("inspect", model, option, "64")
    assert done.returncode == 1
    assert "none: the model takes" in done.stderr


def test_sizes_beyond_counting_are_refused(cli):
    done = cli("inspect", "llama3-8b", "--seq", "445000000")
    assert done.returncode == 1
    assert "too large to count" in done.stderr


@pytest.mark.parametrize("seed", range(5))
def test_binary_junk_is_refused(cli, tmp_path, seed):
    path = tmp_path / "junk"
    path.write_bytes(random.Random(seed).randbytes(4096))
    refusal(cli, path)


@pytest.mark.parametrize("tail", [b"", b"\0", b"junk" * 100], ids=["nothing", "zero", "junk"])
def test_zstd_junk_is_refused(cli, tmp_path, tail):
    path = tmp_path / "junk.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + tail)
    assert f"[{path}] the compressed data " in refusal(cli, path)


def test_a_name_of_many_bytes_makes_no_long_message(cli, step, tmp_path):
    step.sections["events"][0] = ["x" * 60_000, 0]
    path = tmp_path / "long.step.jsonl"
    path.write_text(step.text())
    assert len(refusal(cli, path)) < 1100


def test_a_file_name_may_hold_any_bytes(cli, root, example, tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\x1b[31m\n.step.jsonl"
    with open(path, "wb") as file:
        file.write((root / example).read_bytes())
    result = cli("validate", path)
    assert result.returncode == 0
    assert r"/\xff\x1b[31m\x0a.step.jsonl: valid step" in result.stdout
    assert cli.json("validate", path)[0]["valid"]
    assert cli.json("inspect", path)["ops"] == 27


def test_too_little_memory_is_said_in_one_sentence(cli, tmp_path):
    path = tmp_path / "wide.step.jsonl"
    path.write_text('{"' + "x" * (15 << 20) + '":1}\n')  # below the cap of 16 MiB for one line
    limit = 24 << 20
    message = refusal(cli, path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert message == ("tidemark: error: there is not enough memory for this input; "
                       "try: a machine with more memory, or a smaller step\n")
