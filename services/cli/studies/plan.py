"""`deskbus study plan`: what a study would cost, and what it could tell. Asks nobody."""

from collections.abc import Iterable

from rich.text import Text as Line

from contracts.study import Study, StudyCallsQuery, StudyCallsView
from contracts.subjects.studies import STUDY_CALLS
from libs.bus.client import DeskNotReachable
from libs.facts import amounts
from libs.quant.ticks import priced
from libs.report.tones import Tone
from libs.report.view import Column, Row, Text, count, money, row, say, table, unknown
from libs.report.view import notes as notes_of
from libs.runtime.settings import Settings
from libs.study.estimate import recorded
from libs.study.plan import APART, DAY_DEVIATION, HorizonPlan, NoPlan, StudyPlan, plan_of
from services.cli.render.described import Shown, show
from services.cli.shell.options import JsonOption
from services.cli.shell.problem import CliProblem, WrongUsage
from services.cli.shell.running import asking, desk_client, load_settings
from services.cli.studies.file import EXAMPLE_HINT, FileArgument, read_study

MINUTES_WHOLE = 10
"""From so many on no part of one is printed."""


def plan(file: FileArgument, json: JsonOption = False) -> None:
    """Show what a study would cost, and how large a difference must be to show.

    It calls no model. Tokens, dollars and minutes are estimates from the running desk's recorded
    calls, or from stated defaults. The study never spends more than the budget in its file.
    """
    study, settings = read_study(file), load_settings()
    try:
        result = asking(_planned(study, settings))
    except NoPlan as refused:
        raise WrongUsage(refused.message, refused.hint or EXAMPLE_HINT) from None
    show([result], _screen(study, result), json=json)


async def _planned(study: Study, settings: Settings) -> StudyPlan:
    """The plan by the record of the desk that runs here, if one does."""

    async def ask(query: StudyCallsQuery) -> StudyCallsView:
        try:
            async with desk_client(settings) as client:
                return await client.ask(STUDY_CALLS, query)
        except CliProblem as problem:
            raise DeskNotReachable(problem.message) from problem

    return await plan_of(study, settings, await recorded(study, ask))


def _screen(study: Study, result: StudyPlan) -> Iterable[Shown]:
    dates, number = amounts.count(result.dates, "date"), amounts.count(result.cells, "cell")
    under = f"{study.kind}, {dates} from {result.first} to {result.last}, {number}"
    yield Line.assemble((study.name, "bold"), f": {under}")
    yield table(
        ("Arm", "Provider", "Calls", "Probes", "Tokens", "USD"),
        (
            (
                arm.arm,
                arm.provider,
                *map(count, (arm.calls, arm.probes, arm.tokens)),
                say("no price") if arm.usd is None else money(arm.usd, "USD"),
            )
            for arm in result.arms
        ),
        currency="USD",
    )
    budget = study.budget
    if result.usd_most:
        most = amounts.money(priced(budget.cost_usd, "USD"))
        yield f"at most {most} and {budget.tokens:,} tokens: its budget"
    minutes = f"{result.minutes:g}" if result.minutes < MINUTES_WHOLE else f"{result.minutes:.0f}"
    yield f"about {minutes} min, if the desk has nothing else to do"
    yield from (Text(f"  {line}") for line in result.estimates)
    yield from (Text(f"note: {line}", Tone.WARN) for line in result.notes)
    yield table(
        (
            *(Column(it, right=True) for it in ("Horizon", "Right judgements", "Return a date")),
            Column("Note", wraps=True),
        ),
        map(_horizon_row, result.horizons),
        title="differences between two arms that would show with 80 % probability:",
        notes=notes_of(
            f"assumption: two arms differ in {APART:.0%} of decisions, and by {DAY_DEVIATION:.0%} "
            "per session; the report has this study's numbers"
        ),
    )


def _horizon_row(of: HorizonPlan) -> Row:
    if of.hits_pct is None or of.return_bps is None:
        dates = amounts.count(of.dates, "date")
        why = f"not shown: {dates}, an interval needs {of.dates_least}"
        return row(count(of.horizon), unknown(), unknown(), why)
    why = f"each horizon overlaps {of.overlap} dates" if of.overlap > 1 else ""
    points, bps = say(f"{of.hits_pct:.1f} points"), say(f"{of.return_bps:,} bp")
    return row(count(of.horizon), points, bps, why)
