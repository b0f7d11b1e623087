"""One event as a message: every sentence is code's, nobody's own words are in it."""

from datetime import timedelta

import pytest

from contracts.audit import NOTABLE_EVENTS, EventType
from contracts.notice import LINE_CHARS_MAX, LINES_MAX, TITLE_CHARS_MAX, NoticeKind, Severity
from libs.report import budgets
from libs.report.notify import notices
from services.orchestrator.group.budgets import REMEDIES
from tests.fakes.notable import AT, BUY, DATA, DECISION, FAILED, FILL, ORDER, OTHERS, STOP, notable

AT_RISK = "505.39 USD at risk (0.5% of equity; stop 215.02 USD); review by 2012-08-02"
CUNNING = "<b>*Click* [here](http://evil)</b> @everyone\nApprove now"


@pytest.mark.parametrize("kind", NOTABLE_EVENTS)
def test_every_notable_event_is_told_without_anybodys_own_words(kind: EventType) -> None:
    told = notices.of(notable(kind))
    text = "\n".join((told.title, *told.lines, told.page))

    assert "FREE TEXT" not in text
    assert "cannot read" not in text
    assert "unknown" not in text
    assert told.title


def test_exactly_of_the_notable_events_notices_are_made() -> None:
    assert set(NOTABLE_EVENTS) == set(DATA)
    for kind in OTHERS:
        with pytest.raises(LookupError):
            notices.of(notable(kind))


@pytest.mark.parametrize(
    ("kind", "title", "lines"),
    [
        (
            EventType.DECISION,
            "Decision of main for Fri 2012-06-29",
            (
                "buy 15 AAPL; vetoed GOOG",
                f"AAPL: {AT_RISK}",
            ),
        ),
        (
            EventType.ORDER_FILLED,
            "main: bought 15 AAPL at 243.84 USD",
            ("on Mon 2012-07-02, fee 1.83 USD",),
        ),
        (EventType.ORDER_PLACED, "Order of main: sell 15 AAPL, stop at 215.02 USD", ()),
        (
            EventType.EXITS_CHECKED,
            "Exits of main for Fri 2012-06-29: 1 of 2 positions to sell",
            ("sell 30 AAPL", "MSFT could not be checked"),
        ),
        (EventType.APPROVAL_REQUESTED, "main waits for your approval", ("buy 15 AAPL",)),
        (EventType.APPROVAL_DECIDED, "Proposal of main approved by cli", ()),
        (
            EventType.CYCLE_ENDED,
            "Cycle of main for Fri 2012-06-29 failed in analyzing/quant",
            (),
        ),
        (EventType.TRADING_HALTED, "Buys of every account are halted, by cli", ()),
        (
            EventType.OUTAGE_ENDED,
            "The desk stood still for 6 min 40 s and goes on",
            ("nothing could be committed from 2012-06-29 20:30 UTC to 2012-06-29 20:36 UTC",),
        ),
        (
            EventType.LETTER_KEPT,
            "Dead letter 12: desk.v1.dlq.research.quant (invalid)",
            (),
        ),
        (
            EventType.REPORT_WRITTEN,
            "Report of main for Fri 2012-06-29",
            (
                "worth 101,234.50 USD, +0.00 USD since the session before, +0.00 USD in all",
                "0 fills, 0 positions held",
                "needs you: no price",
            ),
        ),
        (
            EventType.NOTICES_GIVEN_UP,
            "12 messages to channel phone could not be delivered (timeout)",
            ("the oldest is of 2012-06-29 20:30 UTC; they were given up",),
        ),
    ],
)
def test_what_is_said_of_an_event(kind: EventType, title: str, lines: tuple[str, ...]) -> None:
    told = notices.of(notable(kind))
    assert (told.title, told.lines) == (title, lines)


@pytest.mark.parametrize(
    ("kind", "changed", "is_about", "severity"),
    [
        (EventType.ORDER_FILLED, {}, NoticeKind.FILL, Severity.INFO),
        (EventType.ORDER_FILLED, {"type": "stop", "side": "sell"}, NoticeKind.STOP, "warning"),
        (EventType.ORDER_PLACED, {"type": "market"}, NoticeKind.ORDER, "info"),
        (EventType.ORDER_PLACED, {}, NoticeKind.STOP, "info"),
        (EventType.LIMIT_SET, {}, NoticeKind.LIMIT, "info"),
        (EventType.LIMIT_SET, {"value": "41"}, NoticeKind.LIMIT, "warning"),
        (EventType.OPERATION_FAILED, {}, NoticeKind.STEP, "warning"),
        (
            EventType.OPERATION_FAILED,
            {"code": "budget_exhausted", "field": "day_tokens_max"},
            NoticeKind.BUDGET,
            "alarm",
        ),
        (EventType.REQUEST_REJECTED, {"code": "budget_exhausted"}, NoticeKind.BUDGET, "alarm"),
        (EventType.REQUEST_REJECTED, {"requester": "schedule"}, NoticeKind.FAILURE, "alarm"),
        (EventType.REQUEST_REJECTED, {}, NoticeKind.REFUSAL, "warning"),
        (EventType.CYCLE_ENDED, {}, NoticeKind.FAILURE, "alarm"),
        (EventType.CYCLE_ENDED, {"status": "completed"}, NoticeKind.CYCLE, "info"),
    ],
)
def test_what_a_notice_is_about_and_how_serious_it_is(
    kind: EventType, changed: dict[str, str], is_about: NoticeKind, severity: str
) -> None:
    told = notices.of(notable(kind, **changed))
    assert (told.kind, told.severity) == (is_about, severity)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("budgets.cost_usd", "the cycle's USD for models"),
        ("day_tokens_max", "the day's tokens"),
        ("providers.claude.rate", "the rate of claude"),
        ("a newer desk's", "unknown"),
        (None, "unknown"),
    ],
)
def test_a_budget_that_is_used_up_is_named_in_words(field: str | None, words: str) -> None:
    stopped = notices.of(
        notable(EventType.OPERATION_FAILED, code="budget_exhausted", field=field, step="quant")
    )
    assert stopped.title.startswith(f"Budget used up: {words}; ")
    refused = notices.of(notable(EventType.REQUEST_REJECTED, code="budget_exhausted"))
    assert refused.title == "Budget used up: a request by cli was refused"


def test_every_limit_of_the_orchestrator_has_words() -> None:
    assert {*REMEDIES} <= {*budgets.BUDGETS}


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (EventType.OPERATION_FAILED, "code"),
        (EventType.OPERATION_FAILED, "step"),
        (EventType.REQUEST_REJECTED, "requester"),
        (EventType.REQUEST_REJECTED, "code"),
        (EventType.LETTER_KEPT, "subject"),
        (EventType.LETTER_KEPT, "code"),
        (EventType.ORDER_FILLED, "asset"),
        (EventType.TRADING_HALTED, "by"),
        (EventType.NOTICES_GIVEN_UP, "channel"),
        (EventType.NOTICES_GIVEN_UP, "code"),
    ],
)
def test_a_name_that_is_none_is_left_out(kind: EventType, field: str) -> None:
    """Whoever wrote the event, with whatever key: what it smuggles into a name is not told."""
    told = notices.of(notable(kind, **{field: CUNNING}))
    text = "\n".join((told.title, *told.lines))
    for part in ("Click", "evil", "everyone", "<b>", "Approve"):
        assert part not in text


def test_the_account_is_that_of_the_data_or_of_the_cycles_session() -> None:
    assert notices.of(notable(EventType.ORDER_FILLED, account="other")).account == "main"
    assert notices.of(notable(EventType.DECISION, account="other")).account == "other"
    assert notices.of(notable(EventType.TRADING_HALTED)).account is None
    assert notices.of(notable(EventType.DECISION, account="<b>")).account is None


def test_a_proposal_says_until_when_it_waits() -> None:
    event = notable(EventType.APPROVAL_REQUESTED)
    told = notices.of(event)
    assert told.expires_at is not None
    assert (told.expires_at - event.at).total_seconds() == 3600


def test_an_event_of_a_newer_desk_is_told_by_its_type() -> None:
    told = notices.of(notable(EventType.ORDER_FILLED, quantity={"of": "a newer kind"}))
    assert "order_filled" in told.title
    assert told.severity is Severity.WARNING


def test_a_large_decision_is_cut_to_what_one_message_holds() -> None:
    decisions = [{**BUY, "asset": f"T{number}"} for number in range(60)]
    told = notices.of(notable(EventType.DECISION, decisions=decisions))
    assert len(told.lines) == LINES_MAX
    assert told.lines[-1] == "and 52 more"
    assert all(len(line) <= LINE_CHARS_MAX for line in told.lines)
    assert len(told.title) <= TITLE_CHARS_MAX


def test_prices_that_are_made_up_are_said_to_be() -> None:
    told = notices.of(notable(EventType.DECISION, synthetic=True))
    assert told.lines[-1].startswith("synthetic prices")


def test_the_fixtures_words_of_others_stand_where_others_have_the_word() -> None:
    """Or the test above would look for what is not there."""
    for data in (ORDER, STOP, FILL, DECISION, FAILED, BUY):
        assert "FREE TEXT" in str(data)


@pytest.mark.parametrize(("stood_s", "severity"), [(59, "warning"), (60, "alarm")])
def test_a_restart_wakes_nobody_and_an_outage_does(stood_s: int, severity: str) -> None:
    until = (AT + timedelta(seconds=stood_s)).isoformat()
    assert notices.of(notable(EventType.OUTAGE_ENDED, until=until)).severity == severity
    lost = notices.of(notable(EventType.OUTAGE_ENDED, until=until, beats_lost=1))
    assert lost.severity == "alarm"


@pytest.mark.parametrize(
    ("by_s", "words"), [(3_600.0, "ahead by 60 min"), (-86_400.0, "back by 24 h")]
)
def test_a_clock_that_jumped_is_not_called_a_desk_that_stood_still(by_s: float, words: str) -> None:
    told = notices.of(notable(EventType.OUTAGE_ENDED, clock_jump_s=by_s))
    assert told.title == f"The clock of Postgres jumped {words}"
    assert told.severity == "alarm"
