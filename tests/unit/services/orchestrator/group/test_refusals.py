"""Refused messages that are kept: so many a minute of one caller, whatever the others send."""

from services.orchestrator.group.refusals import Refusals


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_of_many_refusals_in_a_minute_the_first_are_kept() -> None:
    refusals = Refusals(60, Clock())

    assert [refusals.is_kept("user") for _ in range(61)] == [True] * 60 + [False]


def test_one_callers_refusals_use_up_nobody_elses_share() -> None:
    refusals = Refusals(1, Clock())
    refusals.is_kept("user")

    assert not refusals.is_kept("user")
    assert refusals.is_kept("cli")


def test_a_share_fills_up_again_and_never_above_a_minutes() -> None:
    clock = Clock()
    refusals = Refusals(60, clock)
    for _ in range(60):
        refusals.is_kept("user")

    clock.now = 2.0
    assert [refusals.is_kept("user") for _ in range(3)] == [True, True, False]
    clock.now = 3_600.0
    assert sum(refusals.is_kept("user") for _ in range(100)) == 60
