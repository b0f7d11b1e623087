"""Samples of one step: do they agree enough to act on?"""

import pytest

from libs.quant.agreement import agreement


@pytest.mark.parametrize(
    ("verdicts", "weights", "stable"),
    [
        (["buy"] * 3, [0.2, 0.2, 0.2], True),
        (["buy"] * 4 + ["hold"], [0.2, 0.2, 0.2, 0.2, 0.1], True),
        (["buy"] * 3 + ["hold"] * 2, [0.2] * 5, False),
        (["buy"] * 6 + ["sell"], [0.2] * 7, False),
        (["buy"] * 3, [0.05, 0.2, 0.6], False),
        (["hold"] * 3, [0.0, 0.0, 0.0], True),
        (["buy"], [0.3], True),
    ],
)
def test_samples_are_stable_where_they_agree_on_verdict_and_weight(
    verdicts: list[str], weights: list[float], stable: bool
):
    assert agreement(verdicts, weights).stable is stable


def test_the_most_frequent_verdict_is_taken_whatever_their_order():
    first = agreement(["hold", "buy", "buy"], [0, 0.1, 0.1])
    assert first.verdict == "buy"
    assert first.share == pytest.approx(2 / 3)
    one, other = agreement(["buy", "hold"], [0.1, 0]), agreement(["hold", "buy"], [0, 0.1])
    assert one.verdict == other.verdict


def test_a_weight_without_its_verdict_is_an_error():
    with pytest.raises(ValueError, match="a weight for each"):
        agreement(["buy"], [])
