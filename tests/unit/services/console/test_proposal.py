"""A proposal that waits, on the approvals page and in the terminal."""

from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from contracts.account import AccountLimits
from contracts.approval import WaitingApproval
from contracts.risk import DecisionValidation
from contracts.stages import Substitute, Why
from services.cli.trading.approvals import proposal_screen
from services.console.pages.show import Show
from services.console.pages.statics import Statics
from tests.unit.services.cli.screens import printed

AT = datetime(2012, 6, 29, 20, tzinfo=UTC)
SAID = "plan by rules (fallback): answer_invalid: no JSON object was found"


def waiting(*substitutes: Substitute) -> WaitingApproval:
    decided = DecisionValidation(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=date(2012, 6, 29),
        passed=True,
        proposal_hash="0" * 64,
        limits=AccountLimits(),
        substitutes=substitutes,
    )
    return WaitingApproval(
        cycle_id=decided.cycle_id,
        op_id=decided.op_id,
        pipeline="lab",
        account="main",
        as_of=decided.as_of,
        requester="cli",
        requested_at=AT,
        expires_at=AT + timedelta(hours=1),
        proposal=decided,
    )


def page(one: WaitingApproval) -> str:
    statics = cast("Statics", SimpleNamespace(url=str))
    show = Show(
        statics, lambda: datetime.now(UTC), has_login=lambda: False, is_demo=False, first_request=""
    )
    source = "{% import 'proposal_parts.html' as them with context %}{{ them.proposal(it) }}"
    facts: dict[str, Any] = {"it": one, "now": AT, "path": "/approvals"}
    return show.environment.from_string(source).render(**facts)


def terminal(one: WaitingApproval) -> str:
    return printed(proposal_screen(one), 120)


def test_a_person_who_approves_sees_which_stages_another_than_the_model_answered() -> None:
    why = "answer_invalid: no JSON object was found"
    fell = waiting(Substitute(stage="planner", by="rules", why=Why.FALLBACK, reason=why))
    for text in (page(fell), terminal(fell)):
        assert "Answered by" in text
        assert SAID in text
    for text in (page(waiting()), terminal(waiting())):
        assert "Answered by" not in text
