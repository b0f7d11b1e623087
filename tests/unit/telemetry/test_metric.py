"""Metrics keep to the number of series that they say."""

from collections.abc import Iterator
from math import isnan

import pytest

from libs.telemetry.metric import OTHER, REGISTRY, Counter, Gauge, Histogram, Label, Metric

WHO = Label("who", "anyone")
made: list[Metric] = []


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    for metric in made:
        REGISTRY.unregister(metric._collector)
    made.clear()


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_what_is_too_much_is_counted_as_other() -> None:
    calls = Counter("t_calls_total", "calls", (WHO,), series_max=2)
    made.append(calls)
    for who in ("a", "b", "c", "d", "a"):
        calls.add(who)
    assert value("t_calls_total", who="a") == 2
    assert value("t_calls_total", who="b") == 1
    assert value("t_calls_total", who=OTHER) == 2
    assert value("t_calls_total", who="c") is None
    assert calls.bound == 3


def test_what_has_begun_is_shown_as_0_before_it_is_counted() -> None:
    forged = Counter("t_forged_total", "forged", (WHO,))
    waited = Histogram("t_waited_seconds", "waited", (WHO,), buckets=(1.0,))
    made.extend((forged, waited))
    assert value("t_forged_total", who="a") is None
    forged.begin("a")
    waited.begin("a")
    assert value("t_forged_total", who="a") == 0
    assert value("t_waited_seconds_count", who="a") == 0


def test_a_figure_too_many_is_left_out() -> None:
    worth = Gauge("t_worth", "worth", (WHO,), series_max=1)
    made.append(worth)
    worth.set(5, "a")
    worth.set(7, "b")
    worth.add(1, "b")
    assert value("t_worth", who="a") == 5
    assert value("t_worth", who="b") is None
    assert value("t_worth", who=OTHER) is None
    assert worth.bound == 1


def test_what_is_gone_makes_room() -> None:
    worth = Gauge("t_worth", "worth", (WHO,), series_max=2)
    made.append(worth)
    worth.replace({("a",): 1, ("b",): 2})
    worth.replace({("b",): 3, ("c",): 4})
    assert value("t_worth", who="a") is None
    assert (value("t_worth", who="b"), value("t_worth", who="c")) == (3, 4)


def test_a_figure_that_nobody_knows_is_not_shown_as_it_was() -> None:
    waiting = Gauge("t_waiting", "waiting")
    made.append(waiting)
    waiting.set(3)
    waiting.replace({})
    assert isnan(value("t_waiting") or 0)
    waiting.set(4)
    assert value("t_waiting") == 4


def test_a_process_shows_no_figure_that_it_never_knew() -> None:
    Gauge("t_unknown", "unknown")
    made.append(Counter("t_none_total", "none yet"))
    assert value("t_unknown") is None
    assert value("t_none_total") == 0


def test_measures_fall_into_buckets() -> None:
    took = Histogram("t_seconds", "took", (WHO,), series_max=1, buckets=(0.1, 1.0))
    made.append(took)
    for seconds in (0.05, 0.5, 5):
        took.observe(seconds, "a")
    took.observe(0.05, "b")
    counts = [value("t_seconds_bucket", who="a", le=le) for le in ("0.1", "1.0", "+Inf")]
    assert counts == [1, 2, 3]
    assert value("t_seconds_count", who=OTHER) == 1
    assert took.bound == 2 * 5
