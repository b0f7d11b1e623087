"""Whether a command is the one on record: what comes over the bus is a claim, not a fact. Pure."""

from dataclasses import dataclass

from contracts.approval import Approval, Verdict
from contracts.constraints import Constraints
from contracts.execution import ExecuteDecisions
from contracts.message import Command
from contracts.types import Money
from libs.runtime.errors import NotOnRecord, OperationEnded

WHAT_TO_DO = (
    "nothing was changed; no orchestrator has sent this: find out who holds its NATS key, and "
    "renew the keys"
)


@dataclass(frozen=True)
class Bounds:
    """The limits of the request on record for its pipeline, within the account's own limits.

    `budget` is what it may spend; None: what the account has. `plugins` are the user's own rules in
    execution's settings: each must have answered for a buy.
    """

    budget: Money | None = None
    constraints: Constraints = Constraints()
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True)
class CommandRecord:
    """A command as the orchestrator has committed it, before it was sent.

    `approval` is what a person has said, where one was `asked`.
    """

    account: str
    command_sha256: str
    ended: bool
    bounds: Bounds = Bounds()
    asked: bool = False
    approval: Approval | None = None

    def require_open(self) -> None:
        """Raise OperationEnded where nobody waits for it any more."""
        if self.ended:
            raise OperationEnded("its operation has ended; nothing was changed")


def require_on_record(command: Command, sha256: str, record: CommandRecord | None) -> CommandRecord:
    """The record of the command. Raises NotOnRecord with what is wrong."""
    if record is None:
        raise NotOnRecord(
            _not_on_record(command, "no such operation of execution is"), may_come=True
        )
    why = _why_not(command, sha256, record)
    if why:
        raise NotOnRecord(_not_on_record(command, why))
    return record


def _why_not(command: Command, sha256: str, record: CommandRecord) -> str:
    account = command.pipeline.account
    if record.account != account:
        return f"it is for account {account}, and account {record.account} is"
    if record.command_sha256 != sha256:
        return f"it is not the one that was sent: SHA-256 {sha256} came, {record.command_sha256} is"
    # Books are opened before anybody is asked; the same command may come again after it.
    is_order = isinstance(command, ExecuteDecisions)
    approved = record.approval is not None and record.approval.verdict is not Verdict.REJECT
    if is_order and record.asked and not approved:
        return "a person was asked, and no approval is"
    return ""


def _not_on_record(command: Command, why: str) -> str:
    return f"{command.step} of operation {command.op_id}: {why} on record; {WHAT_TO_DO}"
