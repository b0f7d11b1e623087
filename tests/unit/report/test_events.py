"""What an event says: one wording, with the reason wherever the event has one."""

from typing import Any

import pytest

from contracts.audit import EventType
from contracts.event_data import EVENT_DATA
from libs.report import events
from libs.report.tones import Tone
from tests.fakes.notable import DATA, FILL, OTHERS, notable

REASONS = {"reason", "message", "error"}
"""Fields of an event's data in which somebody says why."""
ALL = {**DATA, **OTHERS}


def test_every_type_has_words_of_its_own() -> None:
    assert set(events.WORDINGS) == set(EventType) == set(ALL)
    for kind in EventType:
        words = events.described(notable(kind))
        assert words.data is not None, f"the made-up data of {kind} is not as the desk writes it"
        assert words.title
        assert "unknown" not in words.text


@pytest.mark.parametrize("kind", EventType)
def test_the_reason_stands_wherever_an_event_has_one(kind: EventType) -> None:
    has_one = REASONS & set(EVENT_DATA[kind].model_fields)
    words = events.described(notable(kind, **dict.fromkeys(has_one, "because it rained")))
    assert not has_one or words.reason == "because it rained"
    assert ("because it rained" in words.text) is bool(has_one)
    assert not any("because" in line for line in (words.title, *words.lines))


def nested(value: Any, *, depth: int = 0) -> tuple[Any, int]:
    """The data with another reason wherever one stands below its own fields, and how many do."""
    if isinstance(value, list):
        parts = [nested(each, depth=depth + 1) for each in value]
        return [part for part, _ in parts], sum(count for _, count in parts)
    if not isinstance(value, dict):
        return value, 0
    below = {
        name: ("because it rained", 1)
        if depth and name in REASONS and isinstance(each, str)
        else nested(each, depth=depth + 1)
        for name, each in value.items()
    }
    return {name: part for name, (part, _) in below.items()}, sum(n for _, n in below.values())


@pytest.mark.parametrize("kind", EventType)
def test_a_reason_that_stands_deeper_is_said_too_and_in_no_line(kind: EventType) -> None:
    data, count = nested(ALL[kind])
    own = dict.fromkeys(REASONS & set(data), "")
    words = events.described(notable(kind, **data | own))
    assert words.reason.count("because it rained") == count
    assert not any("because" in line for line in (words.title, *words.lines))


def test_some_reason_stands_deeper() -> None:
    assert nested(ALL[EventType.EXITS_CHECKED])[1] == 1


@pytest.mark.parametrize(
    ("kind", "changed", "text"),
    [
        (
            EventType.ORDER_REJECTED,
            {"reason": "not enough cash"},
            "Order of main rejected: buy 15 AAPL: not enough cash",
        ),
        (
            EventType.ATTEMPT_ENDED,
            {"reason": "analyzing/quant failed: it said no"},
            "Attempt of rules failed in analyzing/quant: it said no",
        ),
        (EventType.CYCLE_ENDED, {"reason": "why"}, "Cycle of main for Fri 2012-06-29 failed: why"),
        (EventType.CYCLE_ACCEPTED, {}, "Cycle of main for Fri 2012-06-29 accepted"),
        (EventType.OPERATION_STARTED, {}, "analyzing/quant started"),
        (
            EventType.OPERATION_FAILED,
            {"message": "it said no"},
            "analyzing/quant of main failed (model_silent): it said no",
        ),
        (
            EventType.LLM_CALLED,
            {"error": ""},
            "analyzing/quant claude:small, 1.50 s, 1,234 tokens",
        ),
        (
            EventType.LLM_CALLED,
            {"error": "", "usage_estimated": "none came", "fault": "timeout"},
            "analyzing/quant claude:small, 1.50 s, 1,234 tokens (estimated): no reply (timeout)",
        ),
        (
            EventType.TOOL_CALLED,
            {"error": "no_history: AAPL has none"},
            "analyzing/quant get_stock_price(AAPL), 1.50 s: no_history: AAPL has none",
        ),
        (
            EventType.ANSWER_CHECKED,
            {"error": "", "result": "confidence is missing"},
            "analyzing/quant get_stock_price, 1.50 s, not valid: confidence is missing",
        ),
        (
            EventType.ORDER_FILLED,
            {**FILL, "reason": ""},
            "main: bought 15 AAPL at 243.84 USD; on Mon 2012-07-02, fee 1.83 USD",
        ),
        (
            EventType.TRADING_HALTED,
            {"reason": "a storm"},
            "Buys of every account are halted, by cli: a storm",
        ),
        (
            EventType.LIMIT_SET,
            {},
            (
                "limits.position_pct_max was set to 20% by cli; before, it was 40%; "
                "in force when execution starts the next time"
            ),
        ),
        (
            EventType.LETTER_RETRIED,
            {"reason": "mended"},
            "Dead letter 12: desk.v1.dlq.research.quant (invalid) retried by cli: mended",
        ),
        (
            EventType.NOTICES_GIVEN_UP,
            {},
            (
                "12 messages to channel phone could not be delivered (timeout); the oldest is of "
                "2012-06-29 20:30 UTC; they were given up"
            ),
        ),
    ],
)
def test_an_event_in_one_line(kind: EventType, changed: dict[str, str], text: str) -> None:
    assert events.described(notable(kind, **changed)).text == text


def test_a_failure_is_bad_and_control_characters_are_gone() -> None:
    words = events.described(notable(EventType.OPERATION_FAILED, message="a\nb\x1b[2Jc"))
    assert words.tone is Tone.BAD
    assert words.text.isprintable()
    assert events.described(notable(EventType.ORDER_FILLED)).tone is Tone.GOOD


def test_an_event_of_a_later_version_is_named_by_its_type() -> None:
    words = events.described(notable(EventType.ORDER_FILLED, quantity={"of": "a newer kind"}))
    assert words.text == "An event of type order_filled, which this version cannot read"
    assert words.data is None
