"""`deskbus approvals`: the proposals that wait for a person, and the answers to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Annotated
from uuid import UUID

import typer
from pydantic import ValidationError

from contracts.approval import (
    AnswerProposal,
    ApprovalsQuery,
    QuantityEdit,
    Verdict,
    WaitingApproval,
)
from contracts.cycle import RequestAnswer
from contracts.cycle_query import CycleView
from contracts.risk import UnreadableDecision
from contracts.subjects.approvals import ANSWER_PROPOSAL, APPROVALS
from libs.bus.client import Client
from libs.facts import amounts
from libs.report import approval, rules, story
from libs.report.sections import ShownItems
from libs.report.view import Text
from services.cli.render.described import Shown, head, show
from services.cli.render.story import shown
from services.cli.shell.invalid import typed
from services.cli.shell.newest import CycleArgument, cycle_named
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, ExitCode, WrongUsage
from services.cli.shell.request import accepted
from services.cli.shell.running import ask, with_desk
from services.cli.shell.terminal import aside

CHECKS_SHOWN_MAX = 12
REASON_CHARS = 600
WAITING_MAX = 200

app = group()

PipelineOption = Annotated[
    str | None, typer.Option(help="The pipeline, if several proposals wait.")
]
HashOption = Annotated[
    str | None,
    typer.Option(
        "--hash",
        help="The proposal's hash, or its first characters; a changed proposal is refused.",
    ),
]


@app.command("list")
def list_approvals(json: JsonOption = False) -> None:
    """List waiting proposals; the first to expire is on top."""
    page = ask(APPROVALS, ApprovalsQuery(limit=WAITING_MAX))
    for one in page.unreadable:
        aside(unreadable(one), "yellow")
    screens = chain.from_iterable(map(proposal_screen, page.approvals))
    show(page.approvals, screens, json=json)
    if not page.approvals and not page.unreadable and not json:
        aside("no proposal waits for approval")
    if page.more:
        aside("more proposals wait; answer these first")


@app.command()
def approve(
    cycle_id: CycleArgument,
    drop: Annotated[
        list[str] | None, typer.Option(help="Drop this ticker's order; may be repeated.")
    ] = None,
    quantity: Annotated[
        list[str] | None,
        typer.Option(help="Reduce an order, TICKER=N shares; may be repeated."),
    ] = None,
    pipeline: PipelineOption = None,
    proposal: HashOption = None,
    reason: Annotated[str, typer.Option(help="Kept with the approval.")] = "",
    json: JsonOption = False,
) -> None:
    """Approve a proposal, in whole or in part.

    Orders without --drop or --quantity are approved unchanged.
    """
    edits = edits_of(drop or (), quantity or ())
    verdict = Verdict.EDIT if edits else Verdict.APPROVE
    _answer(cycle_id, pipeline, proposal, json=json, verdict=verdict, edits=edits, reason=reason)


@app.command()
def reject(
    cycle_id: CycleArgument,
    pipeline: PipelineOption = None,
    proposal: HashOption = None,
    reason: Annotated[str, typer.Option(help="The reason, kept on record.")] = "",
    json: JsonOption = False,
) -> None:
    """Reject a proposal.

    Nothing is ordered; its pipeline ends as rejected.
    """
    _answer(
        cycle_id, pipeline, proposal, json=json, verdict=Verdict.REJECT, edits=(), reason=reason
    )


@dataclass(frozen=True)
class ProposalKey:
    """One proposal, by what an answer names it with."""

    cycle_id: UUID
    pipeline: str
    proposal_hash: str


def edits_of(drop: Sequence[str], quantity: Sequence[str]) -> tuple[QuantityEdit, ...]:
    """The edits as they were typed. Raises `CliProblem` (usage)."""
    typed = [_edit("--drop", ticker, ticker, "0") for ticker in drop]
    for text in quantity:
        ticker, _, number = text.partition("=")
        typed.append(_edit("--quantity", text, ticker, number))
    return tuple(typed)


def _edit(option: str, text: str, ticker: str, number: str) -> QuantityEdit:
    try:
        return QuantityEdit(asset=ticker.strip().upper(), quantity=Decimal(number))
    except (InvalidOperation, ValidationError):
        example = "AAPL=10: a ticker and a number of shares" if "q" in option else "a ticker: AAPL"
        raise WrongUsage(f"{option} {text!r} is not valid", f"write {example}") from None


def _answer(
    cycle_id: str,
    pipeline: str | None,
    proposal: str | None,
    *,
    json: bool,
    verdict: Verdict,
    edits: tuple[QuantityEdit, ...],
    reason: str,
) -> None:

    async def work(client: Client) -> RequestAnswer:
        asked = await _asked(client, cycle_id, pipeline)
        known = asked.proposal_hash
        if proposal is not None and not known.startswith(proposal.lower()):
            raise CliProblem(
                f"the proposal's hash is {known}, not {proposal}...",
                "review it again: deskbus approvals list",
                ExitCode.REJECTED,
            )
        decision = typed(
            "answer",
            AnswerProposal,
            **{**vars(asked), "verdict": verdict, "edits": edits, "reason": reason},
        )
        return accepted(await client.ask(ANSWER_PROPOSAL, decision))

    answer = with_desk(work)
    show([answer], [f"{answer.cycle_id} {approval.VERDICTS[verdict]}"], json=json)
    if not json:
        aside(f"deskbus cycle show {answer.cycle_id}")


async def _asked(client: Client, cycle_id: str, pipeline: str | None) -> ProposalKey:
    """The proposal that is meant. Raises `CliProblem`: not found, none was asked, or several
    wait."""
    view = await cycle_named(client, cycle_id)
    page = await client.ask(APPROVALS, ApprovalsQuery(cycle_id=view.cycle_id))
    waiting = [
        ProposalKey(entry.cycle_id, entry.pipeline, entry.proposal.proposal_hash)
        for entry in page.approvals
    ]
    for one in page.unreadable:
        if pipeline in {None, one.pipeline}:
            raise CliProblem(unreadable(one), code=ExitCode.REJECTED)
    # Where none waits, the desk itself says what became of the one that did.
    waiting = [entry for entry in waiting or _answered(view) if pipeline in {None, entry.pipeline}]
    if not waiting:
        status = view.status.value if view.status else "unknown"
        whose = f"pipeline {pipeline} of cycle" if pipeline else "cycle"
        raise CliProblem(
            f"{whose} {view.cycle_id} ({status}) does not wait for approval",
            "`deskbus approvals list` shows the waiting proposals",
            ExitCode.REJECTED,
        )
    if len(waiting) > 1:
        names = ", ".join(entry.pipeline for entry in waiting)
        raise WrongUsage(f"several pipelines wait: {names}", "name one: --pipeline")
    return waiting[0]


def unreadable(one: UnreadableDecision) -> str:
    """A sentence on a proposal that cannot be shown, and what can be done."""
    short = amounts.short(one.cycle_id)
    return (
        f"the proposal of {one.pipeline} for account {one.account} as of {one.as_of}, cycle "
        f"{short}, cannot be read by this version of Deskbus: answer it with its own version, or "
        f"`deskbus cycle cancel {short}`"
    )


def _answered(view: CycleView) -> list[ProposalKey]:
    answered = []
    for entry in view.pipelines:
        contract = entry.contracts.get("approval")
        if view.cycle_id is not None and isinstance(contract, dict):
            answered.append(
                ProposalKey(view.cycle_id, entry.name, str(contract.get("validated_hash")))
            )
    return answered


def proposal_screen(waiting: WaitingApproval) -> Iterable[Shown]:
    """One proposal: what would be ordered, what the rules cut, until when, how to answer."""
    short = amounts.short(waiting.cycle_id)
    yield head(
        f"▸ {waiting.pipeline} of {amounts.session(waiting.as_of)}",
        f"account {waiting.account}  cycle {short} · requested by {waiting.requester}",
    )
    until = f"{waiting.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    yield Text(f"  waits until {until} · hash {waiting.proposal.proposal_hash[:12]}")
    yield approval.orders(waiting.proposal.decisions)
    if answered := story.answered_by(waiting.proposal.substitutes):
        yield from (Text(""), shown(answered))
    if waiting.unchecked:
        yield approval.unchecked(waiting.unchecked, waiting.proposal.decisions)
    findings = ShownItems(rules.against(waiting.proposal.checks), CHECKS_SHOWN_MAX)
    if findings.items:
        yield rules.table(findings)
    yield Text(f"\n  deskbus approvals approve {short} [--drop TICKER] [--quantity TICKER=N]")
    yield Text(f"  deskbus approvals reject {short} --reason WHY\n")
