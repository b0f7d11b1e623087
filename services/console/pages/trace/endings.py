"""How a cycle's pipelines ended, each said once. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.operation import OperationView
from libs.facts import amounts
from libs.report import ending
from libs.report.ending import ReportEnding
from libs.report.reports import Reports
from services.console.pages.trace.waterfall import WaterfallLine

NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class End:
    """A pipeline and how it ended."""

    name: str
    account: str
    provider: str
    ending: ReportEnding


def end_of(view: CycleView, pipeline: PipelineView, nodes: Sequence[OperationView]) -> End:
    """How the pipeline ended; `nodes` are the cycle's operations."""
    end = ending.of(pipeline, Reports.of(pipeline), nodes, view.reason_of(pipeline))
    return End(pipeline.name, pipeline.account, pipeline.provider, end)


def reason_of(view: CycleView, ends: Sequence[End]) -> str:
    """Why the cycle ended so, where no pipeline says that already."""
    if view.status in {CycleStatus.COMPLETED, CycleStatus.RUNNING}:
        return ""
    return "" if any(_same(view.reason, end) for end in ends) else ending.in_words(view.reason)


def is_shown_above(line: WaterfallLine, ends: Iterable[End]) -> bool:
    """Whether the line's error stands at the top already: it is not said twice."""
    return any(_same(line.node.error_message or "", end) for end in ends)


def _same(error: str, end: End) -> bool:
    """A reason names its step first, and a long one is cut. Numbers, such as that of the request
    which was refused, make no other error of it."""
    start, other = _bare(end.ending.words), _bare(error)
    return bool(start and other) and (start in other or other in start)


def _bare(text: str) -> str:
    cut_off = "\N{HORIZONTAL ELLIPSIS}"
    return NUMBER.sub("0", amounts.plain(ending.in_words(text))).strip().removesuffix(cut_off)
