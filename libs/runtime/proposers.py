"""The programs that may propose trades: a file beside the secrets, without any of their tokens.

A person adds and revokes them by `deskbus proposer`. Every part of the desk that has to know one
reads the file anew, so a revoked token is refused from that moment on.
"""

import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from contracts.subjects.subject import PROPOSER, is_proposer
from contracts.types import Name, Percent
from libs.runtime.errors import DeskError
from libs.runtime.whole_file import OWN, write_whole

FILE = "proposers.json"
FILE_BYTES_MAX = 262_144
HTTP_TOKEN_FILE = "http.token"  # noqa: S105 - its name, not what is in it
TOKEN_BYTES = 32
TOKEN_START = "dbp_"  # noqa: S105 - how such tokens begin, for whoever finds one
TOKEN_CHARS_MAX = 200
PROPOSERS_MAX = 100
"""Revoked ones are among them: an account stays with the proposer whose outcomes it has."""
PER_HOUR = 12
OPEN_MAX = 3
"""Proposals of one proposer that have not ended: more would keep others' cycles waiting."""
SALES_MAX = 5
SOLD_PCT_MAX = Decimal(25)
ProposerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,29}$")]


class ProposersUnreadable(DeskError):
    """The proposers' file is damaged: no program may propose until it is repaired."""

    code = "proposers_unreadable"


class ProposerRefused(DeskError):
    """A proposer cannot be added or revoked with these values."""

    code = "invalid"


class Proposer(BaseModel):
    """A program that may propose trades for one account, with the limits that a person gave it.

    `token_sha256` is that of its token. It may propose `per_hour_max` times an hour, previews
    counted. Of the sales of one session `sales_max` may wait or be proposed, of `sold_pct_max`
    percent of equity together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ProposerName
    account: Name
    token_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    added_at: datetime
    revoked_at: datetime | None = None
    approval_required: bool = True
    per_hour_max: int = Field(default=PER_HOUR, ge=1, le=1_000)
    sales_max: int = Field(default=SALES_MAX, ge=0, le=20)
    sold_pct_max: Percent = SOLD_PCT_MAX


class NotAProposer(DeskError):
    """The caller may not propose: it was never added, or was revoked."""

    code = "not_a_proposer"


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    proposers: tuple[Proposer, ...] = Field(default=(), max_length=PROPOSERS_MAX)


class Proposers:
    """Reads and changes the file in a directory of secrets."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE

    def all(self) -> Sequence[Proposer]:
        """All that were ever added, in that order. Raises ProposersUnreadable."""
        try:
            with self.path.open("rb") as file:
                body = file.read(FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise ProposersUnreadable(f"{self.path} cannot be read: {error.strerror}") from error
        try:
            # A body that is cut off is no JSON any more.
            return _File.model_validate_json(body[:FILE_BYTES_MAX]).proposers
        except ValidationError as error:
            raise ProposersUnreadable(
                f"{self.path} is damaged: restore it from a backup, or delete it, which revokes all"
            ) from error

    def version(self) -> tuple[int, int, int] | None:
        """Another value after each change of the file; None where there is none. Raises OSError."""
        try:
            of = self.path.stat()
        except FileNotFoundError:
            return None
        return of.st_ino, of.st_mtime_ns, of.st_size

    def active(self) -> Sequence[Proposer]:
        """Those that are not revoked."""
        return [one for one in self.all() if one.revoked_at is None]

    def named(self, name: str) -> Proposer | None:
        """The one of this name, unless there is none or it is revoked."""
        return next((one for one in self.active() if one.name == name), None)

    def calling(self, identity: str) -> Proposer:
        """The one that an identity on the bus is. Raises NotAProposer."""
        name = identity.removeprefix(f"{PROPOSER}-")
        found = self.named(name) if is_proposer(identity) else None
        if found is None:
            raise NotAProposer("this proposer is revoked, or was never added")
        return found

    def bearing(self, token: str) -> Proposer | None:
        """The one whose token this is."""
        if not token.startswith(TOKEN_START) or len(token) > TOKEN_CHARS_MAX:
            return None
        sha256 = _sha256(token)
        return next(
            (one for one in self.active() if hmac.compare_digest(one.token_sha256, sha256)), None
        )

    def ensure(self) -> None:
        """Make the file, with nobody in it, where there is none. Raises OSError."""
        with self._alone():
            if not self.path.exists():
                self._write(())

    def add(self, proposer: Proposer) -> None:
        """Add one. Raises ProposerRefused where its name or account was another's, OSError."""
        with self._alone():
            known = self.all()
            if any(one.name == proposer.name for one in known):
                raise ProposerRefused(f"proposer {proposer.name} existed before; use another name")
            other = next((one for one in known if one.account == proposer.account), None)
            if other is not None:
                raise ProposerRefused(
                    f"account {proposer.account} is that of proposer {other.name}, and holds its "
                    "outcomes; use another account"
                )
            if len(known) >= PROPOSERS_MAX:
                raise ProposerRefused(
                    f"there are {PROPOSERS_MAX} proposers, revoked ones among them"
                )
            self._write((*known, proposer))

    def revoke(self, name: str, now: datetime) -> Proposer:
        """Revoke one for ever. Raises ProposerRefused where there is none of this name, OSError."""
        self._ever_added(name)  # where nobody was, there may be no folder to lock
        with self._alone():
            found = self._ever_added(name)
            if found.revoked_at is not None:
                return found
            revoked = found.model_copy(update={"revoked_at": now})
            self._write([revoked if one.name == name else one for one in self.all()])
        return revoked

    def _ever_added(self, name: str) -> Proposer:
        found = next((one for one in self.all() if one.name == name), None)
        if found is None:
            raise ProposerRefused(f"proposer {name} does not exist")
        return found

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While the block runs nobody else changes the file: what one revokes, no other brings
        back."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _write(self, proposers: Sequence[Proposer]) -> None:
        text = _File(proposers=tuple(proposers)).model_dump_json(indent=2)
        write_whole(self.path, f"{text}\n".encode(), OWN)


def proposer_names(directory: Path) -> Sequence[str]:
    """The names of those that may propose now. Raises ProposersUnreadable."""
    return [one.name for one in Proposers(directory).active()]


def new_token() -> tuple[str, str]:
    """A new token, and its SHA-256: all that is ever kept of it."""
    token = f"{TOKEN_START}{secrets.token_urlsafe(TOKEN_BYTES)}"
    return token, _sha256(token)


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
