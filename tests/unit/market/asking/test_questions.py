"""Questions to a source: how long they are tried."""

import pytest

from libs.market.asking.call_policy import ATTEMPTS_MAX, TokenBucket
from libs.market.asking.questions import ANSWER_S_MAX, SourceQuestions, Timing
from libs.market.errors import SourceUnavailable


@pytest.mark.parametrize(("each_s", "tries"), [(0.1, ATTEMPTS_MAX), (ANSWER_S_MAX, 1)])
async def test_a_question_is_tried_again_while_somebody_may_wait_for_it_and_no_longer(
    each_s: float, tries: int
) -> None:
    clock, asked = [0.0], []

    def load() -> tuple[None, int]:
        clock[0] += each_s
        asked.append(clock[0])
        raise SourceUnavailable("it", "it is away")

    made = SourceQuestions(
        "Made up",
        TokenBucket(1_000, lambda: clock[0]),
        Timing(sleep=lambda _: None, clock=lambda: clock[0]),
    )
    try:
        with pytest.raises(SourceUnavailable):
            await made.ask(("it",), load)
    finally:
        made.close()
    assert len(asked) == tries
