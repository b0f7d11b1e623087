"""Messages to people as they stand in the tables, written by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from contracts.notice import Notice, NoticeKind, Severity
from libs.postgres.pool import PoolConnection

NOW = datetime(2026, 11, 25, 2, 0, tzinfo=UTC)


def notice(title: str = "Decision of main for Fri 2012-06-29", **fields: Any) -> Notice:
    """A notice as code composes it."""
    given: dict[str, Any] = {
        "event_id": uuid4(),
        "kind": NoticeKind.DECISION,
        "severity": Severity.INFO,
        "event": "decision",
        "at": NOW,
        "account": "main",
        "title": title,
        "lines": ("buy 12 AAPL",),
        "page": "/decisions",
        **fields,
    }
    return Notice(**given)


@dataclass(frozen=True)
class Kept:
    """Writes messages as the orchestrator records them."""

    db: PoolConnection

    async def message(self, channel: str, kept: Notice, status: str = "sent", **state: Any) -> UUID:
        """A notice on a channel; later ones are newer."""
        fields = {
            "event_id": kept.event_id,
            "channel": channel,
            "notice": kept.model_dump_json(),
            "event_at": kept.at,
            "due_at": kept.at,
            "status": status,
            "ended_at": None if status == "due" else kept.at + timedelta(seconds=1),
            "tries": 0 if status == "due" else 1,
            **state,
        }
        places: Sequence[str] = [f"${number}" for number, _ in enumerate(fields, start=1)]
        await self.db.execute(
            f"insert into notifications ({', '.join(fields)}) values ({', '.join(places)})",
            *fields.values(),
        )
        return kept.event_id
