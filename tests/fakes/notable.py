"""Events of every type, each with data as the desk writes it."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from contracts.audit import Event, EventType
from contracts.notice import Notice, NoticeKind, Severity

AT = datetime(2012, 6, 29, 20, 30, tzinfo=UTC)
CYCLE = UUID(int=77)
SESSION = "main/2012-06-29"
CONTRACT = {"cycle_id": str(CYCLE), "op_id": str(CYCLE), "as_of": "2012-06-29"}
ORDER = {
    "account": "main",
    "order_id": str(CYCLE),
    "asset": "AAPL",
    "side": "buy",
    "quantity": "15",
    "type": "market",
    "status": "working",
    "reason": "FREE TEXT",
    "op_id": str(CYCLE),
}
STOP = {
    **ORDER,
    "side": "sell",
    "type": "stop",
    "stop_price": {"amount": "215.02", "currency": "USD"},
}
FILL = {
    **ORDER,
    "status": "filled",
    "price": {"amount": "243.84", "currency": "USD"},
    "fee": {"amount": "1.83", "currency": "USD"},
    "session": "2012-07-02",
}
BUY = {
    "action": "buy",
    "asset": "AAPL",
    "quantity": "15",
    "price": {"amount": "246.25"},
    "allocation_pct": "3.7",
    "confidence": 0.4,
    "reasoning": "FREE TEXT",
    "strategy_used": "FREE TEXT",
    "plan": {
        "horizon_sessions": 60,
        "stop_price": {"amount": "215.02"},
        "risk": {"amount": "505.39"},
        "risk_pct": "0.5",
        "review_by": "2012-08-02",
        "review_event": "FREE TEXT",
    },
}
DECISION = {
    **CONTRACT,
    "passed": True,
    "decisions": [BUY],
    "adjustments": ["FREE TEXT"],
    "vetoed_tickers": ["GOOG"],
    "proposal_hash": "0" * 64,
    "limits": {},
}
APPROVAL = {
    **CONTRACT,
    "proposal_hash": "0" * 64,
    "validated_hash": "0" * 64,
    "verdict": "approve",
    "approver": "cli",
    "reason": "FREE TEXT",
    "decided_at": AT.isoformat(),
    "expires_at": AT.isoformat(),
    "not_after": AT.isoformat(),
}
FAILED = {"step": "quant", "code": "model_silent", "message": "FREE TEXT"}
EXIT = {
    **CONTRACT,
    "account": "main",
    "checks": [
        {"ticker": "AAPL", "quantity": "30", "assessment": "FREE TEXT", "note": "FREE TEXT"},
        {"ticker": "MSFT", "failure": {"code": "no_price", "message": "FREE TEXT"}},
    ],
}
REPORT = {
    **CONTRACT,
    "file_path": "FREE TEXT",
    "report": {
        "account": "main",
        "session": "2012-06-29",
        "currency": "USD",
        "made_at": AT.isoformat(),
        "worth": {
            "cash": "1",
            "positions": "2",
            "equity": "101234.5",
            "earned": dict.fromkeys(("realised", "unrealised", "dividends", "fees"), "0"),
            "ever": dict.fromkeys(("realised", "unrealised", "dividends", "fees"), "0"),
        },
        "attention": [{"what": "no_price", "text": "FREE TEXT", "todo": "FREE TEXT"}],
    },
}
CALL = {
    "step": "quant",
    "name": "get_stock_price",
    "index": 0,
    "duration_ms": 1500.0,
    "arguments": {"ticker": "AAPL"},
    "result": "FREE TEXT",
    "error": "FREE TEXT",
}
LETTER = {
    "sequence": 12,
    "subject": "desk.v1.dlq.research.quant",
    "code": "invalid",
    "by": "cli",
    "reason": "FREE TEXT",
}
ENDED = {"status": "failed", "reason": "analyzing/quant failed: FREE TEXT"}
OTHERS: dict[EventType, dict[str, Any]] = {
    EventType.CYCLE_ACCEPTED: {},
    EventType.PIPELINE_ENDED: ENDED,
    EventType.ATTEMPT_ENDED: ENDED,
    EventType.STATE_ENTERED: {},
    EventType.OPERATION_STARTED: {"step": "quant"},
    EventType.OPERATION_COMPLETED: {"step": "quant"},
    EventType.OPERATION_CANCELLED: {"step": "quant", "message": "because it rained"},
    EventType.LLM_REQUESTED: {
        "step": "quant",
        "name": "claude:small",
        "index": 0,
        "epoch": 1,
        "tokens_max": 900,
        "cost_usd_max": "0.1",
    },
    EventType.LLM_CALLED: {**CALL, "name": "claude:small", "usage": {"output_tokens": 1234}},
    EventType.TOOL_CALLED: CALL,
    EventType.DATA_READ: CALL,
    EventType.ANSWER_CHECKED: {**CALL, "passed": False},
    EventType.LETTER_RETRIED: LETTER,
    EventType.LETTER_DISCARDED: LETTER,
}
"""Of each type of which no notice is made."""
DATA: dict[EventType, dict[str, Any]] = {
    EventType.REQUEST_REJECTED: {"code": "busy", "message": "FREE TEXT", "requester": "cli"},
    EventType.CYCLE_ENDED: ENDED,
    EventType.OPERATION_FAILED: FAILED,
    EventType.MESSAGE_REFUSED: {
        "step": "quant",
        "service": "trader",
        "what": "result",
        "owner": "research",
    },
    EventType.EXITS_CHECKED: EXIT,
    EventType.DECISION: DECISION,
    EventType.APPROVAL_REQUESTED: {
        "step": "approval",
        "proposal_hash": "0" * 64,
        "decisions": [BUY],
        "time_limit_s": 3600,
    },
    EventType.APPROVAL_DECIDED: APPROVAL,
    EventType.APPROVAL_EXPIRED: {**FAILED, "step": "approval"},
    EventType.ORDER_PLACED: STOP,
    EventType.ORDER_FILLED: FILL,
    EventType.ORDER_REJECTED: {**ORDER, "status": "rejected"},
    EventType.ORDER_CANCELLED: {**ORDER, "status": "cancelled"},
    EventType.POSITION_UNPRICED: {
        "account": "main",
        "ticker": "AAPL",
        "quantity": "15",
        "price": {"amount": "240"},
        "priced_on": "2012-06-27",
    },
    EventType.TRADING_HALTED: {"account": None, "reason": "FREE TEXT", "by": "cli"},
    EventType.TRADING_RESUMED: {"account": "main", "reason": "FREE TEXT", "by": "cli"},
    EventType.HOLDINGS_IMPORTED: {
        "account": "main",
        "as_of": "2012-06-29",
        "cash": {"amount": "1"},
        "equity": {"amount": "1000"},
        "hash": "0" * 64,
        "by": "cli",
    },
    EventType.CASH_DEPOSITED: {
        "account": "main",
        "amount": {"amount": "100"},
        "session": "2012-07-02",
        "by": "cli",
    },
    EventType.CASH_WITHDRAWN: {
        "account": "main",
        "amount": {"amount": "100"},
        "session": "2012-07-02",
        "by": "cli",
    },
    EventType.OUTAGE_ENDED: {
        "since": AT.isoformat(),
        "until": (AT + timedelta(seconds=400)).isoformat(),
    },
    EventType.LETTER_KEPT: {
        "sequence": 12,
        "subject": "desk.v1.dlq.research.quant",
        "code": "invalid",
    },
    EventType.REPORT_WRITTEN: REPORT,
    EventType.NOTICES_GIVEN_UP: {
        "channel": "phone",
        "count": 12,
        "code": "timeout",
        "oldest_at": AT.isoformat(),
    },
    EventType.BOOKS_DIFFER: {
        "account": "main",
        "verdict": "differs",
        "differences": [{"kind": "cash", "desk": "1.00 USD", "broker": "2.00 USD"}],
        "by": "execution",
    },
    EventType.LIMIT_SET: {
        "account": None,
        "limit": "position_pct_max",
        "before": "40",
        "value": "20",
        "by": "cli",
    },
    EventType.BOOKS_AGREE: {"account": "main", "verdict": "agrees", "by": "execution"},
    EventType.ORDER_UNRESOLVED: {
        "account": "main",
        "order_id": "00000000-0000-0000-0000-000000000001",
        "asset": "AAPL",
        "state": "sent",
        "what": "FREE TEXT",
    },
    EventType.LATE_FILL: {
        "account": "main",
        "order_id": "00000000-0000-0000-0000-000000000001",
        "asset": "AAPL",
        "state": "over",
        "what": "FREE TEXT",
    },
}
"""Of each type; where a stranger, a model or a person has the word it says FREE TEXT."""

OF_THE_DESK = frozenset(
    {
        EventType.REQUEST_REJECTED,
        EventType.TRADING_HALTED,
        EventType.LIMIT_SET,
        EventType.OUTAGE_ENDED,
        EventType.LETTER_KEPT,
        EventType.NOTICES_GIVEN_UP,
        EventType.LETTER_RETRIED,
        EventType.LETTER_DISCARDED,
    }
)
"""Types of events that are about no account."""


def notable(kind: EventType, at: datetime = AT, *, account: str = "main", **changed: Any) -> Event:
    """An event of the type, with some of its data changed."""
    of_cycle = kind not in OF_THE_DESK
    return Event(
        event_id=uuid4(),
        sequence=1,
        type=kind,
        owner=kind.owner,
        cycle_id=CYCLE,
        state="analyzing" if of_cycle else None,
        session_id=f"{account}/2012-06-29" if of_cycle else None,
        at=at,
        pipeline="rules" if of_cycle else None,
        data={**DATA, **OTHERS}[kind] | changed,
    )


def notice(title: str = "main: bought 15 AAPL", **fields: Any) -> Notice:
    """A notice with a title."""
    said = {
        "event_id": uuid4(),
        "kind": NoticeKind.FILL,
        "severity": Severity.INFO,
        "event": "order_filled",
        "at": AT,
        "account": "main",
        "title": title,
    }
    return Notice.model_validate({**said, **fields})
