"""A study over real sockets convicts the model that knows the future by name, and no honest one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.hindsight import judge
from contracts.study_score import Estimate, LeakVerdict

DATES = 30
"""With fewer nobody is cleared."""


@pytest.mark.soak
@pytest.mark.timeout(900)  # as long as it takes on a busy machine
def test_who_knows_the_future_by_name_is_convicted_and_the_honest_one_is_not(
    make_open_dir: Callable[[], Path],
) -> None:
    judged = judge(make_open_dir(), DATES)

    assert judged.refused == [], "a request that the API would not take"
    assert judged.score.failed == 0
    assert judged.verdicts["knows-names"] is LeakVerdict.LEAKS
    assert judged.verdicts["honest"] is LeakVerdict.CLEAR
    assert judged.verdicts["coin"] is LeakVerdict.NOT_SHOWN, "it has no masked arm here"
    seen = {arm.name: arm.foresight.verdict for arm in judged.score.arms if not arm.control}
    assert (seen.pop("knows"), seen.pop("recognises")) == (LeakVerdict.LEAKS, LeakVerdict.LEAKS)
    seen.pop("coin")
    assert {*seen.values()} == {LeakVerdict.CLEAR}, "without names it knows nothing"
    probes = {probe.arm: probe for probe in judged.score.probes}
    asked = DATES * 4
    assert {(probe.cells, probe.asked) for probe in probes.values()} == {(DATES, asked)}
    found = probes.pop("recognises")
    assert min(found.hits, found.dates) > asked * 0.9, "without a name it knows who and when"
    assert {(probe.hits, probe.dates) for probe in probes.values()} == {(DATES, 0)}
    assert {it.arms[0]: it.blind for it in judged.score.leakage} == {
        "knows": True,
        "honest": True,
        "recognises": False,
        "coin": None,
    }
    assert judged.probe["kind"] == "probe"
    assert judged.amiss == "", "its replay says the same"
    by_name = {gap.provider: gap for gap in judged.score.masked}
    assert isinstance(by_name["knows-names"].excess, Estimate)
    assert by_name["knows-names"].excess.low > 0
    assert by_name["knows-names"].excess.resolution > 1
    assert by_name["honest"].changed < by_name["knows-names"].changed / 4
