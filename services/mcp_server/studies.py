"""The tools of studies: what one would cost and could tell, how far it is, and its score."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from contracts.performance import Benchmark
from contracts.study import (
    HORIZON_MAX,
    RunStudy,
    StudiesQuery,
    Study,
    StudyCallsQuery,
    StudyCallsView,
    StudyStatus,
    StudyView,
)
from contracts.study_score import StudyScoreQuery
from contracts.subjects.studies import RUN_STUDY, STUDIES, STUDY_CALLS, STUDY_SCORE
from contracts.types import Cost, Name, ShortText
from libs.bus.client import QuestionRefused
from libs.bus.desk_link import DeskLink
from libs.report import markdown
from libs.runtime.errors import few
from libs.runtime.ids import NotFound
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.settings import Settings
from libs.study.estimate import recorded
from libs.study.plan import NoPlan, StudyPlan, plan_of
from libs.study.report.compose import compose
from libs.study.report.parts import StudySection
from services.mcp_server.shapes import SHOWN_CHARS_MAX, Short, ToolShape, fitting

BEGIN_S = 18.0
"""The first cell is judged before a study begins, by whoever knows the market and the models."""
SCORE_S = 80.0
"""A long study's statistics; a request over HTTP may take a little longer."""
STUDIES_SHOWN = 20
SECTIONS_MAX = 12
STUDY_DOC = (
    "The content of a study's file. All arms decide on the same dates and tickers. The providers "
    "rules and coin call no model; compare with coin to see what is luck"
)
Wish = Annotated[Study, Field(description=STUDY_DOC)]
StudyName = Annotated[Name, Field(description="The study's name")]


class StudyShape(ToolShape):
    """A study and its progress. `failed` cells failed in one or more arms; the desk refused to
    start `refused` ones. `resting`: a live cycle has priority."""

    name: str
    kind: str
    arms: tuple[str, ...]
    status: StudyStatus
    reason: Short
    cells: int
    completed: int
    failed: int
    running: int
    refused: int
    refusal: Short
    resting: bool
    offline: bool
    tokens: int
    tokens_most: int = Field(description="Limit of its budget")
    cost_usd: Cost
    cost_usd_most: Cost = Field(description="Limit of its budget")
    started_at: datetime
    ended_at: datetime | None


class StudiesShape(ToolShape):
    """Studies, the newest first."""

    studies: tuple[StudyShape, ...]
    more: bool = Field(description="Whether there are older studies: call with their name")
    unreadable: tuple[str, ...] = Field(description="Studies written by a later release")


class BegunShape(ToolShape):
    """The study that was started."""

    name: str
    status: StudyStatus | None
    changed: bool = Field(description="Whether this call started it")
    message: str
    notes: tuple[str, ...] = Field(description="What the study cannot show")
    next: str = Field(description="How to see its progress")


class ScoreShape(ToolShape):
    """A study's report."""

    name: str
    asked: tuple[str, ...] = Field(description="What was scored, and how")
    answer: tuple[str, ...] = Field(
        description="In short: which differences are significant, and which not"
    )
    sections: dict[str, str] = Field(description="Tables in Markdown, by title")
    more: tuple[str, ...] = Field(description="Sections that did not fit: name them in `sections`")


class StudyTools:
    """The tools for studies; what they cost is planned by the desk's `settings`."""

    def __init__(self, desk: DeskLink, settings: Settings) -> None:
        self._desk = desk
        self._settings = settings

    async def plan_study(self, study: Wish) -> StudyPlan:
        """What a study would cost, and how large a difference between its arms must be to stand out
        from luck. It calls no model and starts nothing. The numbers are estimates; the study's
        budget is the limit."""

        async def ask(query: StudyCallsQuery) -> StudyCallsView:
            return await self._desk.ask(STUDY_CALLS, query)

        try:
            return await plan_of(study, self._settings, await recorded(study, ask))
        except NoPlan as refused:
            text = "; ".join(filter(None, (f"study.{refused.message}", refused.hint)))
            raise QuestionRefused("bad_arguments", text) from None

    async def list_studies(
        self, name: Annotated[Name | None, Field(description="Only this study")] = None
    ) -> StudiesShape:
        """The desk's studies, with their progress and spending."""
        page = await self._desk.ask(STUDIES, StudiesQuery(name=name))
        if name is not None and not page.studies and name not in page.unreadable:
            known = await self._desk.ask(STUDIES, StudiesQuery())
            raise _unknown(name, [it.study.name for it in known.studies])
        return StudiesShape(
            studies=tuple(map(_study, page.studies[:STUDIES_SHOWN])),
            more=page.more or len(page.studies) > STUDIES_SHOWN,
            unreadable=page.unreadable[:STUDIES_SHOWN],
        )

    async def study_score(
        self,
        name: StudyName,
        horizon: Annotated[
            int | None,
            Field(
                ge=1,
                le=HORIZON_MAX,
                description="Sessions after a decision; by default as in the study's file",
            ),
        ] = None,
        cost_bps: Annotated[
            float | None,
            Field(
                ge=0,
                le=1_000,
                description=(
                    "Cost per buy or sale, in basis points; by default as in the study's file"
                ),
            ),
        ] = None,
        benchmark: Annotated[
            Benchmark | None,
            Field(description="candidates, cash or a ticker; by default as in the study's file"),
        ] = None,
        sections: Annotated[
            tuple[ShortText, ...],
            Field(max_length=SECTIONS_MAX, description="Titles to show; by default all"),
        ] = (),
    ) -> ScoreShape:
        """A study's score: which arm decides better, by how much, what is luck, and which model
        shows look-ahead. It calls no model, is free, and works while the study runs."""
        query = StudyScoreQuery(name=name, horizon=horizon, cost_bps=cost_bps, benchmark=benchmark)
        score = await self._desk.ask(STUDY_SCORE, query, SCORE_S)
        if not score.found:
            raise _unknown(name, score.studies)
        report = compose(score)
        texts = {section.title: _text(section) for section in report.sections}
        if unknown := sorted({*sections} - {*texts}):
            raise NotFound(
                f"sections: {unknown[0]!r} is unknown; the names are: {', '.join(texts)}"
            )
        wanted = {title: texts[title] for title in sections or texts}
        shown, more = fitting(wanted, SHOWN_CHARS_MAX)
        return ScoreShape(
            name=report.name,
            asked=tuple(report.asked),
            answer=tuple(cell.text for cell in report.answer),
            sections=shown,
            more=more,
        )

    async def run_study(
        self,
        study: Wish,
        offline: Annotated[
            bool, Field(description="Call no model; a call without a recorded answer fails")
        ] = False,
    ) -> BegunShape:
        """Run a study, or retry its failed cells. Models cost at most the study's own budget; if
        you set one here, it must not exceed the default. The daily budget does not count it. A
        study stopped by a person can only be resumed by a person."""
        answer = await self._desk.ask(RUN_STUDY, RunStudy(study=study, offline=offline), BEGIN_S)
        if answer.outcome != "accepted":
            field = f"study.{answer.field}: " if answer.field else ""
            raise QuestionRefused(answer.code or "refused", f"{field}{answer.message}")
        return BegunShape(
            name=study.name,
            status=answer.status,
            changed=answer.changed,
            message=answer.message,
            notes=answer.notes,
            next=f"list_studies with name {study.name} shows its progress, study_score its result; "
            "a person can stop it",
        )


def _study(view: StudyView) -> StudyShape:
    fields = view.model_dump(exclude={"study", "sha256"})
    study, budget = view.study, view.study.budget
    return StudyShape(
        **fields,
        name=study.name,
        kind=study.kind,
        arms=tuple(arm.name for arm in study.arms),
        tokens_most=budget.tokens,
        cost_usd_most=budget.cost_usd,
    )


def _text(section: StudySection) -> str:
    """A section as Markdown; its pictures are left out."""
    return "\n\n".join((section.about, *map(markdown.text_of, section.tables), *section.notes))


def _unknown(name: str, known: Sequence[str]) -> NotFound:
    there = did_you_mean(nearest(name, known)) or f"; there are: {few(known, 'none yet')}"
    return NotFound(f"no study is named {name!r}{there}")
