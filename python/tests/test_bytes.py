"""Sizes and budgets as people write them."""

import pytest

import tidemark

pytestmark = pytest.mark.fast


def test_parse_bytes_tells_binary_from_decimal_units():
    assert tidemark.parse_bytes("1.5GiB") == 3 * 2**29
    assert tidemark.parse_bytes("80GB") == 80 * 10**9


def test_a_number_without_a_unit_is_refused_with_the_place_the_caller_names():
    with pytest.raises(tidemark.Error) as caught:
        tidemark.parse_bytes("70", place="--budget")
    assert (caught.value.kind, caught.value.place) == ("input", "--budget")
    assert "GiB" in caught.value.remedy


def test_format_bytes_for_people_and_to_the_byte():
    assert tidemark.format_bytes(3 * 2**29) == "1.50 GiB"
    assert tidemark.format_bytes_exact(3 * 2**29) == "1,610,612,736 B"


@pytest.mark.parametrize("text, bytes", [("70GiB", 70 * 2**30), ("80GB", 80 * 10**9), ("90%", 900), ("12.5%", 125)])
def test_a_budget_is_a_size_or_a_part_of_the_device(text, bytes):
    assert tidemark.parse_budget(text).bytes_on(1000) == bytes


def test_a_budget_may_be_an_int_of_bytes():
    assert tidemark.parse_budget(1234567) == tidemark.parse_budget("1234567B")


def test_a_budget_prints_as_text_that_reads_back():
    for text in ("70GiB", "1234567B", "87.5%"):
        budget = tidemark.parse_budget(text)
        assert str(budget) == text
        assert repr(budget) == f"Budget('{text}')"
        assert hash(budget) == hash(tidemark.parse_budget(text))


def test_a_budget_of_more_than_the_device_is_refused():
    with pytest.raises(tidemark.Error, match="101%"):
        tidemark.parse_budget("101%")
