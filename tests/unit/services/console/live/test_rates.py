"""Rates of the bus: of about the last minute, and of nothing that was not read."""

import pytest

from services.console.live.rates import OLD_S, Rates


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rates(clock: Clock) -> Rates:
    return Rates(clock)


def test_a_first_reading_has_no_rate_and_one_right_behind_it_neither(rates: Rates, clock: Clock):
    assert rates.read({"a": 7}) == ({}, 0.0)
    clock.now += 0.5
    assert rates.read({"a": 9}) == ({}, 0.0)


def test_a_rate_is_of_the_time_since_the_oldest_reading(rates: Rates, clock: Clock):
    rates.read({"a": 0, "b": 5})
    clock.now += 3
    assert rates.read({"a": 6, "b": 5}) == ({"a": 120.0, "b": 0.0}, 3.0)


def test_what_is_older_than_a_minute_counts_no_longer(rates: Rates, clock: Clock):
    rates.read({"a": 0})
    for _ in range(100):
        clock.now += 3
        (found, past_s) = rates.read({"a": int(clock.now)})
    assert 60 <= past_s <= 63
    assert found["a"] == pytest.approx(60, rel=0.02)
    assert len(rates._readings) <= 22


def test_after_a_long_while_in_which_nobody_looked_it_begins_anew(rates: Rates, clock: Clock):
    rates.read({"a": 0})
    clock.now += OLD_S + 1
    assert rates.read({"a": 5_000}) == ({}, 0.0)


def test_a_counter_that_is_new_or_began_anew_is_left_out(rates: Rates, clock: Clock):
    rates.read({"a": 50})
    clock.now += 60
    assert rates.read({"a": 3, "b": 3}) == ({}, 60.0)
