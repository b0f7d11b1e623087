"""Rate limits: no minute holds more than one, whoever asks when, and bursts need not wait."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.operation import Reserve
from services.orchestrator.group.rate_limits import (
    CLOSED_S_MAX,
    LATE_S,
    MINUTE_S,
    Bucket,
    EndpointPace,
)

WANTED = st.lists(st.tuples(st.floats(0, 30), st.floats(0, LATE_S)), min_size=1, max_size=120)


class Clock:
    """Lets time pass over a bucket, as reading its row again does."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.now_s = 0.0

    def begins(self, wanted: int, after_s: float) -> float:
        """When a call that is asked for after a while may begin."""
        self.now_s += after_s
        self.bucket.full_in_s -= after_s
        wait_s = self.bucket.wait_s(wanted)
        self.bucket.take(wanted, wait_s)
        return self.now_s + wait_s


def most_in_a_minute(arrivals: list[tuple[float, int]]) -> int:
    arrivals = sorted(arrivals)
    return max(
        sum(size for at, size in arrivals if first <= at < first + MINUTE_S)
        for first, _ in arrivals
    )


@given(limit=st.integers(2, 80), asked=WANTED)
def test_no_minute_has_more_calls_than_the_limit_however_late_they_arrive(limit, asked):
    clock = Clock(Bucket(limit))
    arrivals = [(clock.begins(1, after_s) + late_s, 1) for after_s, late_s in asked]
    assert most_in_a_minute(arrivals) <= limit


@given(
    limit=st.integers(1_000, 100_000),
    asked=st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1), st.floats(0, 1)), max_size=60),
)
def test_no_minute_uses_more_tokens_than_the_limit_where_the_rest_is_given_back(limit, asked):
    clock, arrivals = Clock(Bucket(limit)), [(0.0, 0)]
    for after_s, share, used_share in asked:
        reserved = int(limit * 0.25 * share)
        used = int(reserved * used_share)
        arrivals.append((clock.begins(reserved, after_s), used))
        clock.bucket.give_back(reserved - used)
    assert most_in_a_minute(arrivals) <= limit


def test_a_quarter_of_the_limit_begins_at_once_and_then_the_pace_is_even():
    clock = Clock(Bucket(60))
    begins = [clock.begins(1, 0.0) for _ in range(20)]
    assert begins[:15] == [0.0] * 15
    steps = [later - sooner for sooner, later in pairwise(begins[14:])]
    assert steps == [pytest.approx((MINUTE_S + LATE_S) / 45)] * 5


def test_after_a_rest_it_is_full_again():
    clock = Clock(Bucket(60))
    for _ in range(40):
        clock.begins(1, 0.0)
    assert clock.begins(1, 120.0) == clock.now_s


def test_a_call_of_more_tokens_than_fit_begins_at_a_full_bucket_and_the_next_one_waits():
    bucket = Bucket(4_000)
    assert bucket.wait_s(50_000) == 0.0
    bucket.take(50_000, 0.0)
    assert bucket.wait_s(1) > MINUTE_S
    bucket.give_back(49_500)
    assert bucket.wait_s(500) == 0.0


def test_without_limits_nobody_waits_and_nothing_is_written():
    pace = EndpointPace("ollama")
    for _ in range(1_000):
        assert pace.wait_s(Reserve(tokens=10**6)) == 0.0
        pace.take(Reserve(tokens=10**6), 0.0)
    assert not pace.changed


def test_who_asked_to_be_left_alone_is_by_everybody_without_limits_too():
    pace = EndpointPace("ollama")
    pace.close(7.0)
    pace.close(3.0)
    assert pace.changed
    assert pace.wait_s(Reserve(tokens=1)) == 7.0
    assert "Retry-After of another 7 s" in pace.limits()


def test_when_it_opens_again_no_more_begin_at_once_than_after_any_rest():
    pace = EndpointPace("claude", calls=Bucket(8))
    pace.close(60.0)
    waits = []
    for _ in range(4):
        waits.append(pace.wait_s(Reserve()))
        pace.take(Reserve(), waits[-1])
    assert waits == [60.0, 60.0, 70.5, 81.0]


def test_no_answer_closes_an_endpoint_for_ever():
    pace = EndpointPace("claude")
    pace.close(1e30)
    assert pace.closed_s == CLOSED_S_MAX
