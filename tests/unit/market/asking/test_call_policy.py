"""Pace, backoff and breaker: when to ask, when to wait, when to leave a service alone."""

from libs.market.asking.call_policy import (
    ATTEMPTS_MAX,
    BACKOFF_S,
    BACKOFF_S_MAX,
    BURST_MAX,
    DOWN_S,
    FAULTS_MAX,
    LIMITED_S,
    LIMITED_S_MAX,
    Breaker,
    TokenBucket,
    backoff_s,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_backoff_doubles_up_to_its_limit_with_full_jitter() -> None:
    longest = [backoff_s(attempt, lambda: 1.0) for attempt in range(1, ATTEMPTS_MAX + 5)]
    assert longest[:3] == [BACKOFF_S, 2 * BACKOFF_S, 4 * BACKOFF_S]
    assert max(longest) == BACKOFF_S_MAX
    assert backoff_s(3, lambda: 0.0) == 0.0
    assert len({backoff_s(3) for _ in range(20)}) > 1


def test_a_burst_goes_at_once_and_then_the_pace_holds() -> None:
    clock = Clock()
    pace = TokenBucket(2.0, clock)
    assert pace.take(int(BURST_MAX)) == 0.0
    assert pace.take(2) == 1.0
    assert pace.take(2) == 2.0  # behind the one before
    clock.now = 100.0
    assert pace.take(1) == 0.0


def test_who_is_told_to_slow_down_slows_everyone() -> None:
    clock = Clock()
    pace = TokenBucket(2.0, clock)
    pace.hold(3.0)
    assert pace.take(1) == 3.5


def test_single_faults_do_not_open_the_breaker_and_a_row_of_them_does() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAULTS_MAX - 1):
        breaker.failed("HTTP 500", limited=False)
    assert breaker.admit() is None
    breaker.succeeded()
    for _ in range(FAULTS_MAX):
        breaker.failed("HTTP 500", limited=False)
    refusal = breaker.admit()
    assert refusal is not None
    assert (refusal.wait_s, refusal.why, refusal.limited) == (DOWN_S, "HTTP 500", False)


def test_after_its_rest_one_question_tries_it_and_the_others_wait() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    breaker.failed("limit", limited=True)
    clock.now = LIMITED_S
    assert breaker.rest() is None
    assert breaker.admit() is None
    assert breaker.admit() is not None
    breaker.succeeded()
    assert breaker.admit() is None
    assert breaker.admit() is None


def test_a_try_that_fails_closes_the_door_again() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAULTS_MAX):
        breaker.failed("HTTP 500", limited=False)
    clock.now = DOWN_S
    assert breaker.admit() is None
    breaker.failed("HTTP 500", limited=False)
    refusal = breaker.admit()
    assert refusal is not None
    assert refusal.wait_s == DOWN_S


def test_each_rate_limit_in_a_row_doubles_the_rest() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    rests = []
    for _ in range(8):
        breaker.failed("limit", limited=True)
        refusal = breaker.rest()
        assert refusal is not None
        rests.append(refusal.wait_s)
        clock.now += refusal.wait_s
    assert rests[:3] == [LIMITED_S, 2 * LIMITED_S, 4 * LIMITED_S]
    assert rests[-1] == LIMITED_S_MAX
