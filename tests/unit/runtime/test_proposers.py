"""The register of proposers: tokens are never in it, one account has one proposer for ever."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.subjects.subject import identity_of
from libs.runtime.proposers import (
    FILE,
    NotAProposer,
    Proposer,
    ProposerRefused,
    Proposers,
    ProposersUnreadable,
    new_token,
)

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def one(name: str = "bot", account: str = "a", sha256: str = "0" * 64) -> Proposer:
    return Proposer(name=name, account=account, token_sha256=sha256, added_at=NOW)


def test_without_a_file_nobody_may_propose(tmp_path: Path) -> None:
    known = Proposers(tmp_path)
    assert (known.all(), known.active(), known.bearing("dbp_x")) == ((), [], None)


def test_a_token_finds_its_proposer_and_is_not_kept(tmp_path: Path) -> None:
    known, (token, sha256) = Proposers(tmp_path), new_token()
    known.add(one(sha256=sha256))
    found = known.bearing(token)
    assert found is not None
    assert found.name == "bot"
    assert found.approval_required
    for wrong in (f"{token}x", token[:-1], token.upper(), sha256, "", "dbp_" + "x" * 10_000):
        assert known.bearing(wrong) is None
    text = (tmp_path / FILE).read_text()
    assert token not in text
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_a_revoked_proposer_is_nobody_and_its_account_stays_its_own(tmp_path: Path) -> None:
    known, (token, sha256) = Proposers(tmp_path), new_token()
    known.add(one(sha256=sha256))
    assert known.calling(identity_of("bot")).account == "a"
    known.revoke("bot", NOW)
    assert (known.bearing(token), known.named("bot"), known.active()) == (None, None, [])
    with pytest.raises(NotAProposer):
        known.calling(identity_of("bot"))
    with pytest.raises(ProposerRefused, match="proposer bot existed before"):
        known.add(one(account="b"))
    with pytest.raises(ProposerRefused, match="account a is that of proposer bot"):
        known.add(one("other"))
    with pytest.raises(ProposerRefused, match="proposer nobody does not exist"):
        known.revoke("nobody", NOW)


@pytest.mark.parametrize("identity", ["bot", "cli", "proposer", "proposer-", "proposer-other"])
def test_no_other_identity_is_a_proposer(tmp_path: Path, identity: str) -> None:
    known = Proposers(tmp_path)
    known.add(one())
    with pytest.raises(NotAProposer):
        known.calling(identity)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"proposers": [{}]}', b'{"others": []}', b"\xff" * 300_000]
)
def test_a_damaged_file_lets_nobody_in(tmp_path: Path, body: bytes) -> None:
    (tmp_path / FILE).write_bytes(body)
    with pytest.raises(ProposersUnreadable, match="is damaged"):
        Proposers(tmp_path).bearing("dbp_x")
