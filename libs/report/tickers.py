"""All that one pipeline's stages said of one ticker. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from contracts.account import Fill, Side
from contracts.execution import Order
from contracts.research import AssetView, ResearchFinding
from contracts.risk import Check, DecisionAction, PortfolioDecision, RuleOutcome
from contracts.sentiment import Candidate, TickerSentiment
from contracts.trader import StockPick
from libs.facts import amounts
from libs.report import view
from libs.report.cited import Marked, TextPiece, unsigned
from libs.report.reports import Reports
from libs.report.sections import Line
from libs.report.tones import Tone, tone
from libs.report.view import BLANK, Cell, Column, Table

QUARTER = "momentum_3m_pct"
"""The indicator that there is once a ticker has traded for a quarter."""
WANTED = Column("Wanted", right=True)
FINDING_TEXTS = ("summary", "news_summary", "earnings_outlook")


def reasons(candidate: Candidate) -> str:
    """Why its sources named it: `screener: gainer 2 (+2.60%); news: headlines in 7 days: 3`."""
    named = ((name, candidate.reasons.get(name, "")) for name in candidate.sources)
    return "; ".join(f"{name}: {why}" if why else name for name, why in named)


@dataclass(frozen=True)
class TickerRow:
    """Each stage's words on one ticker; None where it said nothing. `unscored` says why there is no
    `mood`.

    `validated` is what the rules left of a pick, `decision` what a person then left of that.
    """

    ticker: str
    reports: Reports
    mood: TickerSentiment | None
    unscored: str | None
    signal: AssetView | None
    finding: ResearchFinding | None
    pick: StockPick | None
    checks: Sequence[Check]
    validated: PortfolioDecision | None
    decision: PortfolioDecision | None
    order: Order | None
    fill: Fill | None

    @property
    def mood_words(self) -> Sequence[TextPiece]:
        """Why it is spoken of so, in pieces: quoted headlines know where they are from."""
        return _cited(self.reports.sentiment, "tickers", self.mood, "rationale")

    @property
    def signal_words(self) -> Sequence[TextPiece]:
        """The quant's reasoning in pieces: its figures know where they are from."""
        return _cited(self.reports.quant, "assets", self.signal, "reasoning")

    @property
    def finding_words(self) -> Sequence[Line]:
        """The analyst's summary, news and outlook in pieces, as far as there are any."""
        return [
            _cited(self.reports.research, "tickers", self.finding, name)
            for name in FINDING_TEXTS
            if getattr(self.finding, name, "")
        ]

    @property
    def pick_words(self) -> Sequence[TextPiece]:
        """The trader's reasoning in pieces."""
        report = self.reports.picks
        is_buy = report is not None and self.pick in report.picks
        entries = "picks" if is_buy else "sell_recommendations"
        return _cited(report, entries, self.pick, "reasoning")

    @property
    def review_words(self) -> Sequence[Line]:
        """The reviewer's change of it and its reasons, in pieces."""
        report = self.reports.review
        if report is None:
            return ()
        return [
            unsigned(report, f"adjustments.{place}", text)
            for place, text in enumerate(report.adjustments)
            if text.startswith(f"{self.ticker}: ")
        ]

    @property
    def texts(self) -> Mapping[str, Sequence[Line]]:
        """The texts about it by the stage that wrote them."""
        return {
            "sentiment": [self.mood_words],
            "quant": [self.signal_words],
            "analyst": self.finding_words,
            "picks": [self.pick_words],
            "review": self.review_words,
        }

    @property
    def fundamental(self) -> float | None:
        """The analyst's score; None where it knew no fundamentals (0 in older findings)."""
        return self.finding.fundamental_score or None if self.finding else None

    @property
    def technical(self) -> float | None:
        """The analyst's score; None where it is 0 for want of the quarter of prices that a trend
        and its momentum are scored by."""
        if self.finding is None:
            return None
        known = self.signal is not None and QUARTER in self.signal.technical_indicators
        return self.finding.technical_score if known else self.finding.technical_score or None

    @property
    def wanted(self) -> str:
        """`buy 33.6%`: the trader's pick; empty where there is none."""
        pick = self.pick
        return f"{pick.action.value} {amounts.percent(pick.allocation_pct)}" if pick else ""

    @property
    def is_edited(self) -> bool:
        """Whether a person made it smaller."""
        return self.decision != self.validated

    @property
    def is_refused(self) -> bool:
        """Whether the rules, or a person, left nothing of a pick."""
        nothing = self.decision is None or self.decision.action is DecisionAction.HOLD
        return self.pick is not None and self.reports.validation is not None and nothing

    @property
    def allowed(self) -> str:
        """The rest that rules and person left of it: `22.8%`, `vetoed`, `dropped`; empty of no
        pick.
        """
        if self.is_refused:
            if any(check.outcome is RuleOutcome.VETOED for check in self.checks):
                return "vetoed"
            return "dropped" if self.is_edited else "0%"
        if self.decision is None or self.decision.action is DecisionAction.HOLD:
            return ""
        return amounts.percent(self.decision.allocation_pct)

    @property
    def allowed_tone(self) -> Tone:
        """Bad where nothing was left, a warning where less was."""
        if self.is_refused:
            return Tone.BAD
        cut = self.is_edited or any(not check.passed for check in self.checks)
        return Tone.WARN if cut else Tone.GOOD

    @property
    def shares(self) -> Decimal | None:
        """The shares that this came to; None of no pick."""
        if self.is_refused:
            return Decimal(0)
        return self.decision.quantity or None if self.decision else None


def _cited(
    report: Marked | None, entries: str, entry: object | None, field: str
) -> Sequence[TextPiece]:
    """A text of one of a report's entries in pieces; none where the report has no such entry."""
    if report is None or entry is None:
        return ()
    place = getattr(report, entries).index(entry)
    return unsigned(report, f"{entries}.{place}.{field}", getattr(entry, field))


def rows(reports: Reports) -> Sequence[TickerRow]:
    """One row a ticker that was looked into: what was decided on first, then as it was planned."""
    mood, quant = reports.sentiment, reports.quant
    research, execution = reports.research, reports.execution
    moods = {asset.ticker: asset for asset in mood.tickers} if mood else {}
    unscored = {asset.ticker: asset.reason for asset in mood.unscored} if mood else {}
    signals = {asset.ticker: asset for asset in quant.assets} if quant else {}
    findings = {asset.ticker: asset for asset in research.tickers} if research else {}
    picks = {pick.ticker: pick for pick in reports.wanted}
    validated, decisions = reports.validated, reports.decisions
    # The stop order that follows a sale comes after it, and is shown on its own line.
    placed = reversed(execution.orders) if execution else ()
    orders = {order.asset: order for order in placed}
    fills = {asset.asset: asset for asset in execution.fills} if execution else {}
    assets = reports.plan.assets if reports.plan else ()
    names = dict.fromkeys((*validated, *picks, *assets, *signals, *findings))
    checks = reports.validation.checks if reports.validation else ()
    return [
        TickerRow(
            ticker=name,
            reports=reports,
            mood=moods.get(name),
            unscored=unscored.get(name),
            signal=signals.get(name),
            finding=findings.get(name),
            pick=picks.get(name),
            checks=[check for check in checks if check.ticker == name],
            validated=validated.get(name),
            decision=decisions.get(name),
            order=orders.get(name),
            fill=fills.get(name),
        )
        for name in names
    ]


# --- as a table ---------------------------------------------------------------------------------


def table(of: Sequence[TickerRow], account: str = "", as_of: date | None = None) -> Table:
    """A row a ticker: what was found, wanted and allowed; a column without values is left out."""
    currencies = {it.finding.currency for it in of if it.finding}
    currency = currencies.pop() if len(currencies) == 1 else ""
    columns: Sequence[tuple[Column | str, Callable[[TickerRow], Cell]]] = (
        ("Ticker", lambda it: view.ticker(it.ticker, account, as_of)),
        (Column(f"Close {currency}".rstrip(), spare=6), _close),
        (Column("Sentiment", right=True, spare=7), _sentiment),
        ("Quant", _quant),
        (Column("RSI 14", right=True, spare=5), _indicator("rsi_14", "{:.0f}".format)),
        (Column("To SMA 200", right=True, spare=2), _to_average),
        (Column("3 months", right=True, spare=3), _indicator(QUARTER, amounts.gain_percent)),
        (
            Column("Volatility", right=True, spare=1),
            _indicator("volatility_3m_pct", amounts.percent),
        ),
        (Column("Fund", right=True, spare=4), lambda it: _score(it.fundamental)),
        (Column("Tech", right=True, spare=8), lambda it: _score(it.technical)),
        (
            Column("Risk", right=True, spare=9),
            lambda it: _score(it.finding.risk if it.finding else None),
        ),
        (WANTED, _wanted),
        (Column("Allowed", right=True), lambda it: view.say(it.allowed, it.allowed_tone)),
        ("Shares", _shares),
    )
    used = [
        (column, cell)
        for column, cell in columns
        if column == WANTED or any(cell(it).value is not None for it in of)
    ]
    return view.table(
        (column for column, _ in used),
        ([cell(it) for _, cell in used] for it in of),
        currency=currency,
    )


def _close(of: TickerRow) -> Cell:
    return view.price(of.finding.close) if of.finding else BLANK


def _sentiment(of: TickerRow) -> Cell:
    if of.mood is None:
        return view.unknown()
    score = of.mood.score
    return view.say(f"{score:+.2f}", Tone.GOOD if score > 0 else Tone.BAD if score < 0 else None)


def _quant(of: TickerRow) -> Cell:
    """`bullish 0.36`: the direction and how sure of it the quant is, 0 to 1."""
    if of.signal is None:
        return BLANK
    signal = of.signal.signal
    return view.say(f"{signal.value} {of.signal.confidence:.2f}", tone(signal))


def _indicator(name: str, text_of: Callable[[float], str]) -> Callable[[TickerRow], Cell]:
    def cell(of: TickerRow) -> Cell:
        value = of.signal.technical_indicators.get(name) if of.signal else None
        return view.unknown() if value is None else view.say(text_of(value))

    return cell


def _to_average(of: TickerRow) -> Cell:
    values = of.signal.technical_indicators if of.signal else {}
    close, average = values.get("close"), values.get("sma_200")
    if not close or not average:
        return view.unknown()
    return view.say(amounts.gain_percent((close / average - 1) * 100))


def _score(score: float | None) -> Cell:
    """`8.0`; a dash where there was nothing to score."""
    return view.unknown() if score is None else view.say(f"{score:.1f}")


def _wanted(of: TickerRow) -> Cell:
    if of.pick is None:
        return view.unknown()
    return view.say(of.wanted, Tone.GOOD if of.pick.action is Side.BUY else Tone.BAD)


def _shares(of: TickerRow) -> Cell:
    shown = BLANK if of.shares is None else view.shares(of.shares)
    return shown.toned(Tone.BAD) if of.is_refused else shown
