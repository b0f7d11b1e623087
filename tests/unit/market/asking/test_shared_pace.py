"""A pace that processes keep together, by a file."""

import multiprocessing
from pathlib import Path

import pytest

from libs.market.asking.shared_pace import HOLD_S_MAX, WAIT_S_MAX, SharedPace
from libs.market.errors import RateLimited, SourceUnavailable

STEP_S = 0.125


class Clock:
    at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def two(tmp_path: Path, clock: Clock) -> tuple[SharedPace, SharedPace]:
    path = tmp_path / "cache" / "pace"
    return SharedPace(path, 8, "EDGAR", clock), SharedPace(path, 8, "EDGAR", clock)


def test_two_that_share_a_file_take_places_one_after_the_other(
    tmp_path: Path, clock: Clock
) -> None:
    first, second = two(tmp_path, clock)
    waits = [each.take(1) for each in (first, second, first, second)]
    assert waits == [0.0, STEP_S, 2 * STEP_S, 3 * STEP_S]


def test_after_a_rest_there_is_no_burst(tmp_path: Path, clock: Clock) -> None:
    pace, _ = two(tmp_path, clock)
    pace.take(1)
    clock.at += 100
    assert [pace.take(1) for _ in range(3)] == [0.0, STEP_S, 2 * STEP_S]


def test_a_question_of_three_requests_takes_three_places(tmp_path: Path, clock: Clock) -> None:
    first, second = two(tmp_path, clock)
    assert first.take(3) == 0.0
    assert second.take(1) == 3 * STEP_S


def test_who_is_told_to_slow_down_holds_the_others_too(tmp_path: Path, clock: Clock) -> None:
    first, second = two(tmp_path, clock)
    first.hold(600)
    with pytest.raises(RateLimited, match="next try in 600 s") as refused:
        second.take(1)
    assert refused.value.wait_s == 600
    clock.at += 600
    assert second.take(1) == 0.0


def test_a_refusal_takes_no_place(tmp_path: Path, clock: Clock) -> None:
    pace, _ = two(tmp_path, clock)
    pace.hold(WAIT_S_MAX + 1)
    for _ in range(5):
        with pytest.raises(RateLimited):
            pace.take(1)
    clock.at += WAIT_S_MAX + 1
    assert pace.take(1) == 0.0


@pytest.mark.parametrize("text", ["", "nonsense", "nan", "inf", str(1_000 + HOLD_S_MAX + 1)])
def test_a_file_that_cannot_be_right_is_not_believed(
    tmp_path: Path, clock: Clock, text: str
) -> None:
    pace, _ = two(tmp_path, clock)
    pace.take(1)
    (tmp_path / "cache" / "pace").write_text(text)
    assert pace.take(1) == 0.0
    assert pace.take(1) == STEP_S


def test_a_directory_that_cannot_be_written_names_the_setting(tmp_path: Path, clock: Clock) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(SourceUnavailable, match="DESKBUS_DATA_DIR"):
        SharedPace(blocked / "pace", 8, "EDGAR", clock).take(1)


def _take(path: str, count: int) -> list[float]:
    pace = SharedPace(Path(path), 8, "EDGAR", lambda: 1_000.0)
    return [pace.take(1) for _ in range(count)]


@pytest.mark.slow
def test_processes_at_once_get_every_place_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        waits = pool.starmap(_take, [(str(tmp_path / "pace"), 50)] * 4)
    places = sorted(round(wait / STEP_S) for each in waits for wait in each)
    assert places == list(range(200))
