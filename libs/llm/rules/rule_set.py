"""One agent of the rules provider: two pure functions over a task and its evidence."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, JsonValue, TypeAdapter

from contracts.reasons import ReasonDraft, Speaks
from contracts.research import ResearchFinding
from libs.facts.desk import HEADLINE
from libs.llm.provider import ToolEvidence, is_error

CONFIDENCE_MAX = 0.6
"""Stated thresholds read no context: they never claim more, and claim 0 without evidence."""
LABEL = "rules: "
"""Begins every text that these rules write, so that nobody takes it for a model's judgement."""

FINDINGS = TypeAdapter(tuple[ResearchFinding, ...])
TaskData = Mapping[str, JsonValue]


@dataclass(frozen=True)
class ToolRequest:
    """A tool that the rules want to have called."""

    tool: str
    arguments: Mapping[str, JsonValue]


def account_and_prices(tickers: Iterable[str]) -> tuple[ToolRequest, ...]:
    """The calls for the own account, and for the present price of each ticker."""
    prices = (ToolRequest("get_stock_price", {"ticker": ticker}) for ticker in tickers)
    return (ToolRequest("get_portfolio", {}), *prices)


@dataclass(frozen=True)
class Published:
    """A headline: the name of its fact, its title and who published it."""

    name: str
    title: str
    publisher: str


class EvidenceIndex:
    """Evidence by tool and ticker. Errors are told apart: they are no evidence."""

    def __init__(
        self,
        evidence: Sequence[ToolEvidence],
        facts: Mapping[str, float | str] | None = None,
        publishers: Mapping[str, str] | None = None,
    ) -> None:
        self._facts = facts or {}
        self._publishers = publishers or {}
        self._good = [item for item in evidence if not is_error(item.result)]
        self._bad = [item for item in evidence if is_error(item.result)]

    def result(self, tool: str, ticker: str = "") -> Mapping[str, JsonValue]:
        """A tool's result, for a ticker where one is named; empty where there is none."""
        for item in self._good:
            if item.tool != tool or not isinstance(item.result, dict):
                continue
            if not ticker or item.result.get("ticker") == ticker:
                return item.result
        return {}

    def number(self, ticker: str, quantity: str) -> float | None:
        """A ticker's fact as a number; None where there is none."""
        value = self._facts.get(f"{ticker}.{quantity}")
        return value if isinstance(value, float) else None

    def has(self, ticker: str, quantity: str) -> bool:
        """Whether there is such a fact of a ticker."""
        return f"{ticker}.{quantity}" in self._facts

    def texts(self, ticker: str, quantity: str) -> Sequence[tuple[str, str]]:
        """A ticker's facts of one quantity that are of different days, by name, in their order."""
        head = f"{ticker}.{quantity}@"
        return [(name, str(value)) for name, value in self._facts.items() if name.startswith(head)]

    def headlines(self, ticker: str) -> tuple[Published, ...]:
        """The headlines of a ticker, in the order of its facts."""
        return tuple(
            Published(name, title, self._publishers.get(name, ""))
            for name, title in self.texts(ticker, HEADLINE)
        )

    def all_of(self, quantity: str) -> Sequence[tuple[str, str]]:
        """Every ticker that has a fact of this quantity, with its value in words."""
        tail = f".{quantity}"
        return [
            (name.removesuffix(tail), str(value))
            for name, value in self._facts.items()
            if name.endswith(tail)
        ]

    def reason(
        self, ticker: str, quantity: str, *, beside: str = "", speaks: Speaks, why: str = ""
    ) -> tuple[ReasonDraft, ...]:
        """A reason that names a ticker's fact, held against another of it; none where there is no
        such fact."""
        name, other = f"{ticker}.{quantity}", f"{ticker}.{beside}" if beside else ""
        if name not in self._facts or (other and other not in self._facts):
            return ()
        return (ReasonDraft(fact=name, beside=other, speaks=speaks, why=why),)

    def ids(self, ticker: str) -> tuple[str, ...]:
        """The ids of the evidence about a ticker."""
        return tuple(
            item.id
            for item in self._good
            if isinstance(item.result, dict) and item.result.get("ticker") == ticker
        )

    def why_not(self, tool: str) -> str:
        """The error of a tool in its own words; empty where it gave none."""
        for item in self._bad:
            if item.tool == tool and isinstance(item.result, dict):
                error = item.result["error"]
                return str(error.get("message", "")) if isinstance(error, dict) else str(error)
        return ""


@dataclass(frozen=True)
class RuleSet:
    """One agent. `ask` gives the tools of the one tooling round, `answer` the output."""

    answer: Callable[[TaskData, EvidenceIndex], BaseModel]
    ask: Callable[[TaskData], Sequence[ToolRequest]] = lambda _: ()


def findings_in(task: TaskData) -> tuple[ResearchFinding, ...]:
    """The findings of the task's research report."""
    report = task["research_report"]
    rows = report["tickers"] if isinstance(report, dict) else ()
    return FINDINGS.validate_python(rows)


def numbers(value: JsonValue) -> dict[str, float]:
    """The entries of a JSON object that are numbers."""
    return dict(_numbers(value))


def labelled(text: str) -> str:
    """`text` with the rules' label."""
    return f"{LABEL}{text}"


def confidence(share: float) -> float:
    """A share (0..1) of the confidence that rules may claim, to three decimals."""
    return round(CONFIDENCE_MAX * min(max(share, 0.0), 1.0), 3)


def _numbers(value: JsonValue) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, int | float) and not isinstance(item, bool):
                yield key, float(item)
