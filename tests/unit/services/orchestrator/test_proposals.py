"""A proposal as a request: its words are cleaned, its limits are the account's, not the call's."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from contracts.proposal import Propose
from contracts.subjects.subject import identity_of
from libs.runtime.proposers import NotAProposer, Proposer, Proposers
from services.orchestrator.proposals import (
    READ_LEAST,
    ProposalDesk,
    ReadTooOften,
    request_of,
)
from tests.fakes.proposers import added

ACCOUNT = Proposer(
    name="bot",
    account="a",
    token_sha256="0" * 64,
    added_at=datetime(2026, 11, 30, tzinfo=UTC),
    sales_max=2,
    sold_pct_max=Decimal(10),
)


def wish(*picks: tuple[str, str, str], reason: str = "", preview: bool = False) -> Propose:
    return Propose.model_validate(
        {
            "proposal_id": "p1",
            "preview": preview,
            "picks": [
                {"ticker": name, "action": side, "allocation_pct": pct, "reason": reason}
                for name, side, pct in picks
            ],
        }
    )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("see https://evil.example/x?y=1 now", "see (link left out) now"),
        ("see evil.example/path now", "see (link left out) now"),
        ("www.evil.example", "(link left out)"),
        ("[click](https://evil.example)", "(link left out)"),
        ("javascript:alert(1)", "(link left out)"),
        ("mailto:me@evil.example", "(link left out)"),
        ("HTTPS://EVIL.EXAMPLE/X", "(link left out)"),
        ("one\ntwo\u202ethree\x1b[31m", "one two three [31m"),
        ("P/E of 12.5, up 3.2% vs. Q1", "P/E of 12.5, up 3.2% vs. Q1"),
        ("<script>x</script>", "<script>x</script>"),
    ],
)
def test_words_are_on_one_line_without_links(said: str, kept: str) -> None:
    request = request_of(wish(("AAPL", "buy", "10"), reason=said), ACCOUNT)
    assert request.proposal is not None
    assert request.proposal.picks[0].reason == kept


def test_a_proposal_is_an_ordinary_cycle_within_the_accounts_limits() -> None:
    request = request_of(wish(("AAPL", "buy", "10"), ("IBM", "sell", "50")), ACCOUNT)
    assert (request.kind, request.as_of, request.universe) == ("decision", None, ("AAPL",))
    assert [(one.provider, one.account) for one in request.pipelines] == [("proposal", "a")]
    assert request.approval_required
    assert request.constraints == {"max_sales": "2", "max_sold_pct": "10"}


def test_a_preview_has_a_kind_and_ids_of_its_own_and_asks_nobody() -> None:
    preview = request_of(wish(("IBM", "sell", "50"), preview=True), ACCOUNT)
    real = request_of(wish(("IBM", "sell", "50")), ACCOUNT)
    assert (preview.kind, preview.approval_required) == ("preview", False)
    assert preview.universe == ("IBM",)
    assert preview.idempotency_key != real.idempotency_key


@pytest.mark.parametrize("fields", [{"approval_required": False}, {"account": "b"}, {"as_of": "x"}])
def test_the_call_names_no_account_no_day_and_no_approval(fields: dict[str, object]) -> None:
    picks = [{"ticker": "A", "action": "buy", "allocation_pct": 1}]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Propose.model_validate({"proposal_id": "p", "picks": picks, **fields})


def test_more_than_its_share_of_a_minute_is_not_even_looked_at(tmp_path: Path) -> None:
    added(tmp_path, {"bot": {}, "other": {}, "much": {"per_hour_max": 100}})
    now = 0.0
    desk = ProposalDesk(tmp_path, lambda: now, is_demo=False)
    for _ in range(READ_LEAST):
        assert desk.proposer("proposer-bot").name == "bot"
    with pytest.raises(ReadTooOften, match="wait a minute"):
        desk.proposer("proposer-bot")
    assert desk.proposer("proposer-other").name == "other"
    assert all(desk.proposer("proposer-much") for _ in range(100))
    now = 60.0
    assert desk.proposer("proposer-bot").name == "bot"


def test_a_revoked_proposer_is_refused_from_the_next_proposal_on(tmp_path: Path) -> None:
    added(tmp_path, {"bot": {}})
    desk = ProposalDesk(tmp_path, lambda: 0.0, is_demo=False)
    assert desk.proposer(identity_of("bot")).name == "bot"
    Proposers(tmp_path).revoke("bot", datetime.now(UTC))
    with pytest.raises(NotAProposer):
        desk.proposer(identity_of("bot"))
