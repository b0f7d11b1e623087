"""Why not that one: each candidate that a decision did not buy, with its causes. Pure.

All of it is read from the record: what the trader's report holds (the rules that left no room,
thresholds with their values, a model's words), the books, the plan, research, the rules' checks,
a person's answer and the orders. Nothing is judged again, by no setting of today.
"""

from collections.abc import Iterator, Mapping, Sequence

from contracts.account import OrderStatus, Side
from contracts.approval import Verdict
from contracts.cycle import CycleStatus
from contracts.not_bought import Cause, NotBought
from contracts.risk import RuleOutcome
from contracts.trader import StockPick
from libs.facts import amounts
from libs.report import view
from libs.report.cited import pieces
from libs.report.reports import Reports
from libs.report.view import Column, Table, Text

DOUBLE = "no_doubling_down"
"""The rule that says of what is held that it is held."""
UNSOURCED = " (not from evidence)"
"""Stands behind a number of a model's own."""
LEGEND = "A price to buy above is the trader's threshold only. A risk rule may still veto."
HEADS: Mapping[Cause, str] = {
    Cause.HELD: "held",
    Cause.OWN_WORDS: "the model",
    Cause.UNSTABLE: "unstable",
    Cause.NO_REASON: "no reason",
    Cause.NOT_LOOKED_INTO: "not looked into",
    Cause.NO_FINDING: "no finding",
    Cause.NOT_DECIDED: "not decided",
    Cause.PERSON: "a person",
    Cause.ORDER: "order",
    Cause.UNREADABLE: "not readable",
}
"""The cause in words; a rule and a threshold have a name."""


def of(reports: Reports, status: CycleStatus, reason: str = "") -> tuple[NotBought, ...]:
    """The causes of each candidate that was not bought, the first of a ticker the weightiest.

    `status` and `reason` are the pipeline's end. A buy that still waits is in no cause.
    """
    case = _Case(reports, status, reason)
    return tuple(cause for name in candidates(reports) for cause in case.of(name))


def candidates(reports: Reports) -> Sequence[str]:
    """The tickers that were looked at, those of the digest first; none before there is one."""
    if reports.digest is None:
        return ()
    plan, research = reports.plan, reports.research
    names = (
        *reports.digest.tickers,
        *(plan.assets if plan else ()),
        *([finding.ticker for finding in research.tickers] if research else ()),
    )
    return tuple(dict.fromkeys(names))


def of_ticker(causes: Sequence[NotBought], ticker: str) -> Sequence[str]:
    """The sentences on one ticker."""
    return [sentence(cause) for cause in causes if cause.ticker == ticker]


def by_ticker(causes: Sequence[NotBought]) -> dict[str, str]:
    """All sentences on each ticker."""
    names = dict.fromkeys(cause.ticker for cause in causes)
    return {name: "; ".join(of_ticker(causes, name)) for name in names}


def sentence(cause: NotBought) -> str:
    """`quant: bearish, net votes -2 of 5; a buy needs bullish, net votes +2`."""
    head = HEADS.get(cause.cause, cause.name)
    text = f"{head}: {_words(cause)}" if cause.cause in _NAMED else _words(cause)
    above = f"would buy above {amounts.price(cause.buys_above)}" if cause.buys_above else ""
    return "; ".join(filter(None, (text, above)))


_NAMED = frozenset({Cause.RULE, Cause.THRESHOLD, Cause.OWN_WORDS})
"""Causes whose words do not say whose they are."""


def table(causes: Sequence[NotBought]) -> Table:
    """A row a cause; tickers with the very same causes stand together, as after a failure."""
    rows = (
        view.row(
            " ".join(names) if it is own[0] else "",
            HEADS.get(it.cause, it.name),
            _words(it),
            view.price(it.buys_above) if it.buys_above else view.BLANK,
            key=it.ticker,
        )
        for names, own in _together(causes)
        for it in own
    )
    columns = (
        Column("Not bought", wraps=True),
        "Cause",
        Column("Why", wraps=True),
        "Would buy above",
    )
    notes = (Text(LEGEND),) if any(it.buys_above for it in causes) else ()
    return view.table(columns, rows, notes=notes)


def _together(
    causes: Sequence[NotBought],
) -> Sequence[tuple[Sequence[str], Sequence[NotBought]]]:
    """Tickers, and the causes that all of them have."""
    own: dict[str, list[NotBought]] = {}
    for it in causes:
        own.setdefault(it.ticker, []).append(it)
    same: dict[tuple[str, ...], list[str]] = {}
    for name, found in own.items():
        same.setdefault(tuple(map(sentence, found)), []).append(name)
    return [(names, own[names[0]]) for names in same.values()]


def _words(cause: NotBought) -> str:
    match cause.cause:
        case Cause.RULE:
            seen = f"{cause.value}, limit {cause.limit}"
            return "; ".join(filter(None, (seen, cause.why)))
        case Cause.THRESHOLD:
            return f"{cause.value}; a buy needs {cause.limit}"
        case _:
            return cause.why


class _Case:
    """One pipeline's record, asked ticker by ticker."""

    def __init__(self, reports: Reports, status: CycleStatus, reason: str) -> None:
        self._reports = reports
        self._is_over = status is not CycleStatus.RUNNING
        self._ended = f": {reason}" if reason else ""
        positions = reports.portfolio.positions if reports.portfolio else ()
        self._held = {item.ticker: item.quantity for item in positions if item.quantity > 0}
        self._picks = {(pick.action, pick.ticker): pick for pick in reports.wanted}

    def of(self, ticker: str) -> Iterator[NotBought]:
        """The causes of one ticker; none where it was bought, or nobody has decided yet."""
        reports = self._reports
        pick = self._picks.get((Side.BUY, ticker))
        if pick is not None:
            yield from self._refused(pick)
        elif reports.picks is not None:
            yield from self._passed(ticker) or self._unread(ticker)
        elif ticker in self._held:
            yield self._has(ticker)
        elif lost := reports.lost("daily_picks"):
            yield _cause(ticker, Cause.UNREADABLE, lost)
        elif self._is_over:
            yield _cause(ticker, Cause.NOT_DECIDED, f"the trader decided nothing{self._ended}")

    def _has(self, ticker: str) -> NotBought:
        sold = ", and this decision sells" if (Side.SELL, ticker) in self._picks else ""
        held = self._held[ticker]
        shares = f"{amounts.quantity(held)} {'share' if held == 1 else 'shares'}"
        return _cause(ticker, Cause.HELD, f"{shares} held already{sold}")

    def _passed(self, ticker: str) -> list[NotBought]:
        """The causes on record in the trader's report, behind the one that it is held."""
        picks = self._reports.picks
        if picks is None:
            return []
        held = ticker in self._held
        causes = [self._has(ticker)] if held else []
        for place, cause in enumerate(picks.passed):
            if cause.ticker == ticker and not (held and cause.name == DOUBLE):
                parts = pieces(picks, f"passed.{place}.why", cause.why)
                why = "".join(part.text + UNSOURCED * part.loose for part in parts)
                causes.append(cause.model_copy(update={"why": why}))
        causes += [
            _cause(
                ticker,
                Cause.UNSTABLE,
                f"of {it.samples} answers on the same evidence {it.buy} would buy it",
            )
            for it in picks.unstable
            if it.ticker == ticker
        ]
        return causes

    def _unread(self, ticker: str) -> Iterator[NotBought]:
        """A ticker of which the trader's report has nothing on record."""
        plan, research = self._reports.plan, self._reports.research
        findings = research.tickers if research else ()
        if plan is not None and ticker not in plan.assets:
            yield _cause(ticker, Cause.NOT_LOOKED_INTO, "the plan does not have it")
        elif research is not None and ticker not in {finding.ticker for finding in findings}:
            own = (text for text in research.corrected if text.startswith(f"{ticker}: "))
            why = next(own, "the analyst gave no finding of it").removeprefix(f"{ticker}: ")
            yield _cause(ticker, Cause.NO_FINDING, why)
        elif lost := self._reports.lost("plan", "research_report"):
            yield _cause(ticker, Cause.UNREADABLE, lost)
        else:
            yield _cause(ticker, Cause.NO_REASON, "the model gave no reason")

    def _refused(self, pick: StockPick) -> Iterator[NotBought]:
        """A pick that was not bought: by the rules, a person, or its order."""
        ticker, reports = pick.ticker, self._reports
        validation, execution = reports.validation, reports.execution
        orders = execution.orders if execution else ()
        own = [it for it in orders if it.asset == ticker and it.side is Side.BUY]
        if any(it.status in _STANDS for it in own):
            return
        if lost := reports.lost("decision_validation", "approval", "execution_result"):
            yield _cause(ticker, Cause.UNREADABLE, lost)
            return
        checks = validation.checks if validation else ()
        vetoes = [
            NotBought(
                ticker=ticker,
                cause=Cause.RULE,
                name=check.rule,
                value=check.value,
                limit=check.limit,
                why=check.reason,
            )
            for check in checks
            if check.ticker == ticker and check.outcome is RuleOutcome.VETOED
        ]
        if validation is None or ticker not in reports.validated:
            yield from vetoes
            if not vetoes and self._is_over:
                yield _cause(ticker, Cause.NOT_DECIDED, f"the rules did not judge it{self._ended}")
            return
        answer = reports.approval
        if answer is not None and answer.verdict is Verdict.REJECT:
            # The reason is how the pipeline ended, and stands there.
            yield _cause(ticker, Cause.PERSON, f"{answer.approver} rejected the proposal")
            return
        if answer is not None and ticker not in reports.decisions:
            because = f": {answer.reason}" if answer.reason else ""
            yield _cause(ticker, Cause.PERSON, f"{answer.approver} took it out{because}")
            return
        if own:
            because = f": {own[0].reason}" if own[0].reason else ""
            yield _cause(ticker, Cause.ORDER, f"its order was {own[0].status.value}{because}")
        elif self._is_over:
            yield _cause(ticker, Cause.ORDER, f"no order was placed{self._ended}")


_STANDS = frozenset({OrderStatus.FILLED, OrderStatus.WORKING})


def _cause(ticker: str, cause: Cause, why: str) -> NotBought:
    return NotBought(ticker=ticker, cause=cause, why=why)
