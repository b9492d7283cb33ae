"""tidemark max: the largest that fits, the smallest device and budget."""

import json

import pytest

pytestmark = pytest.mark.fast

GPT2 = ["gpt2", "--seq", "256", "--device", "t4"]


def fits(cli, *options):
    result = cli("plan", *options, "--budget", "90%", "--json")
    return json.loads(result.stdout)["termination"] in ("fits", "optimal", "feasible")


def test_the_largest_batch_fits_and_the_next_does_not(cli, tmp_path):
    found = cli.json("max", *GPT2, "--of", "batch", "-o", str(tmp_path / "plan.json"))
    largest = found["largest"]
    assert found["monotone"] and not found["is_last_tried"] and largest > 1
    assert fits(cli, *GPT2, "--batch", str(largest))
    assert not fits(cli, *GPT2, "--batch", str(largest + 1))
    assert found["plan"]["termination"] in ("optimal", "feasible")
    verdict = cli.json("verify", "gpt2", str(tmp_path / "plan.json"), "--seq", "256", "--batch", str(largest), "--target", "cuda")
    assert verdict["holds"]
    tried = {trial["size"]: trial["fits"] for trial in found["trials"]}
    assert tried[largest] and not tried[largest + 1]


def test_layers(cli):
    options = ["gpt2-xl", "--seq", "256", "--device", "t4"]
    found = cli.json("max", *options, "--of", "layers")
    assert 1 <= found["largest"] < 48  # GPT-2 XL has 48, and 16 bytes for each of 1.5 billion parameters
    assert f"the largest number of layers that fits is {found['largest']}" in found["answer"]


def test_a_sequence_is_as_long_as_the_model_takes(cli):
    found = cli.json("max", "gpt2", "--device", "h100-sxm", "--of", "seq")
    assert (found["largest"], found["is_last_tried"]) == (1024, True)


def test_the_smallest_budget_is_the_smallest_peak(cli):
    options = ["gpt2", "--seq", "256", "--batch", "4", "--device", "t4"]
    found = cli.json("max", *options, "--of", "budget")
    assert found["proved"]
    assert cli.json("plan", *options, "--budget", f"{found['smallest']}B")["units"] == found["plan"]["units"]
    assert cli("plan", *options, "--budget", f"{found['smallest'] - 1}B").returncode == 3


def test_the_smallest_device(cli):
    found = cli.json("max", "gpt2", "--batch", "16", "--of", "device")
    trials = found["trials"]
    assert [trial["memory_bytes"] for trial in trials] == sorted(trial["memory_bytes"] for trial in trials)
    assert [trial["fits"] for trial in trials] == [False] * (len(trials) - 1) + [True]
    assert trials[-1]["device"] == found["smallest"] == found["plan"]["device"]


def test_what_does_not_fit_at_all_is_3(cli):
    result = cli("max", "gpt2-xl", "--device", "p4", "--of", "batch")
    assert result.returncode == 3
    assert "not even a batch of 1 fits" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["gpt2", "--of", "batch"], 2, "the device is missing"),
        (["gpt2", "--of", "depth", "--device", "t4"], 2, "batch"),
        (["gpt2", "--of", "batch", "--batch", "3", "--device", "t4"], 2, "leave out --batch"),
        (["gpt2", "--of", "device", "--device", "t4"], 2, "leave out --device"),
        (["gpt2", "--of", "device", "--budget", "8GiB"], 2, "a part of each device's memory"),
        (["resnet18", "--of", "layers", "--device", "t4"], 2, "stages"),
        (["resnet18", "--of", "seq", "--device", "t4"], 2, "images"),
        (["examples/steps/two_layer_mlp.step.jsonl", "--of", "batch", "--device", "t4"], 1, "recorded already"),
        (["gpt3", "--of", "batch", "--device", "t4"], 1, "there is no such file or model"),
    ],
)
def test_what_makes_no_sense_is_refused(cli, arguments, code, words):
    result = cli("max", *arguments)
    assert result.returncode == code
    assert words in result.stderr


def test_what_is_not_proved_is_not_said_to_be(cli):
    """Reserved bytes are replayed, not modelled: no proof says that the next size needs more."""
    options = ["max", "gpt2", "--seq", "128", "--device", "t4", "--of", "batch"]
    for against, is_proved in [("rounded", True), ("reserved", False)]:
        found = cli.json(*options, "--against", against)
        (next_one,) = [trial for trial in found["trials"] if trial["size"] == found["largest"] + 1]
        assert next_one["proved"] == is_proved
        text = " ".join(cli(*options, "--against", against).stdout.split())
        assert ("GiB, as far as is known" in text) != is_proved
