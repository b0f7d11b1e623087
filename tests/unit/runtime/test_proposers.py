"""The register of proposers: tokens are never in it, one account has one proposer for ever."""

import multiprocessing
import stat
import time
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


def add_many(folder: Path, first: int) -> None:
    known = Proposers(folder)
    for number in range(first, first + KILLED_EVERY):
        known.add(one(f"p{number}", f"a{number}"))


KILLED_EVERY = 20
KILLS = 4


def test_whoever_is_killed_while_it_adds_leaves_a_whole_register(tmp_path: Path) -> None:
    known, fork = Proposers(tmp_path), multiprocessing.get_context("fork")
    for round_ in range(KILLS):
        before = len(known.all())
        adding = fork.Process(target=add_many, args=(tmp_path, round_ * KILLED_EVERY))
        adding.start()
        while len(known.all()) == before:
            assert adding.is_alive()
        time.sleep(round_ / 1_000)
        adding.kill()
        adding.join()
        since = [of.name for of in known.all()[before:]]
        expected = [f"p{number + round_ * KILLED_EVERY}" for number in range(len(since))]
        assert since == expected


def test_two_that_change_it_at_once_lose_nothing(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    adding = [fork.Process(target=add_many, args=(tmp_path, start)) for start in (0, 40)]
    for each in adding:
        each.start()
    for each in adding:
        each.join()
    known = Proposers(tmp_path)
    assert {of.name for of in known.all()} == {f"p{n}" for n in (*range(20), *range(40, 60))}


def test_the_version_changes_with_the_file(tmp_path: Path) -> None:
    known = Proposers(tmp_path)
    versions = [known.version()]
    known.ensure()
    versions.append(known.version())
    known.add(one())
    versions.append(known.version())
    known.ensure()
    assert known.version() == versions[-1]
    known.revoke("bot", NOW)
    versions.append(known.version())
    assert versions[0] is None
    assert len(set(versions)) == 4
