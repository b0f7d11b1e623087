"""A made-up cycle, told in real contracts."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.trace.export import SpanExportResult

from contracts.account import AccountLimits, Fill, OrderStatus, Portfolio, Side
from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView, Recording
from contracts.execution import ExecutionResult, Order
from contracts.message import Contract
from contracts.operation import CallKind, JournalEntry, OperationStatus, OperationView
from contracts.reasons import Figure, Loose, Reason, Speaks
from contracts.research import (
    AssetView,
    Plan,
    QuantReport,
    QuantSignal,
    ResearchFinding,
    ResearchReport,
)
from contracts.risk import Check, DecisionAction, DecisionValidation, PortfolioDecision, RuleOutcome
from contracts.sentiment import (
    Candidate,
    DroppedTicker,
    Headline,
    SentimentReport,
    SignalDigest,
    SourceReport,
    TickerSentiment,
    UnscoredTicker,
)
from contracts.subjects.subject import snake
from contracts.trader import DailyPicks, StockPick
from contracts.types import Failure, Money, Usage
from libs.report import why_not
from libs.report.reports import Reports
from tests.fakes.log_lines import forget_log_setup

CYCLE_ID = UUID("4332d851-4ebc-510c-b28d-0f5c50338936")
ORDER_ID = UUID("1f23ea1e-d284-50f0-b17f-1463970b7725")
AS_OF = date(2012, 6, 29)
USED = Usage(
    input_tokens=9_000,
    output_tokens=1_000,
    cache_read_tokens=2_000,
    cache_write_tokens=400,
    cost_usd=Decimal("0.0312"),
)
ACCEPTED_AT = datetime(2026, 11, 22, 2, 0, tzinfo=UTC)
NO_NEWS = Failure(code="not_in_source", message="made-up prices has no news; use another source")
DROPPED = (DroppedTicker(ticker="XYZ", reason="fewer than 20 sessions of prices"),)
SOURCES = (
    SourceReport(name="screener", ok=True),
    SourceReport(name="news", ok=False, error=NO_NEWS),
)
NEWS = "AAPL.headline@2012-06-28.ghijklmn"
MOODS = (
    TickerSentiment(
        ticker="AAPL",
        score=0.5,
        confidence=0.4,
        mentions=2,
        reasons=(Reason(fact=NEWS, speaks=Speaks.FOR, why="up 9", about="AAPL"),),
        key_quotes=("it rises",),
        rationale='For: headline "it rises" of 2012-06-28 (up 9).',
    ),
)
QUOTED = Figure(
    field="tickers.0.rationale",
    start=14,
    text='"it rises"',
    unit="text",
    facts=(NEWS,),
    source="a paper",
    known="2012-06-28T14:00:00+00:00",
)
LOOSE = Loose(field="tickers.0.rationale", start=43, text="9")
UNSCORED = (UnscoredTicker(ticker="GOOG", reason="no headline was known at as_of"),)
HEARD: dict[str, Any] = {
    "tickers": MOODS,
    "unscored": UNSCORED,
    "market_mood": "calm",
    "figures": (QUOTED,),
    "loose": (LOOSE,),
}
HEADLINE = Headline(
    title="it rises", source="a paper", published_at=datetime(2012, 6, 28, 14, 0, tzinfo=UTC)
)


def _usd(amount: str) -> Money:
    return Money(amount=Decimal(amount))


def _pick(ticker: str, share: str, action: Side = Side.BUY) -> StockPick:
    return StockPick(
        ticker=ticker,
        action=action,
        allocation_pct=Decimal(share),
        reasoning=f"{ticker} rises",
        confidence=0.5,
    )


def _check(rule: str, ticker: str, outcome: RuleOutcome, value: str, limit: str) -> Check:
    return Check(
        rule=rule,
        ticker=ticker,
        outcome=outcome,
        passed=outcome is RuleOutcome.KEPT,
        value=value,
        limit=limit,
        reason="because",
    )


def _finding(ticker: str, risk: float) -> ResearchFinding:
    return ResearchFinding(
        ticker=ticker,
        fundamental_score=1.0,
        technical_score=8.0,
        risk_score=risk,
        measured_risk=risk,
    )


def _view(ticker: str, signal: QuantSignal) -> AssetView:
    indicators = {"close": 584.0, "rsi_14": 55.58, "sma_200": 486.6}
    return AssetView(
        ticker=ticker,
        signal=signal,
        confidence=0.4,
        reasoning="votes",
        technical_indicators=indicators,
    )


@pytest.fixture(autouse=True)
def _log_of_one_test() -> Iterator[None]:
    yield
    forget_log_setup()


@pytest.fixture
def contracts() -> dict[str, Contract]:
    """All that one pipeline has made, by the name of the contract."""
    ids = {"cycle_id": CYCLE_ID, "op_id": CYCLE_ID, "as_of": AS_OF}
    made = (
        SignalDigest(
            **ids,
            candidates=tuple(
                Candidate(ticker=name, sources=("screener",), headlines=(HEADLINE,))
                for name in ("AAPL", "GOOG", "IBM")
            ),
            dropped=DROPPED,
            sources=SOURCES,
            market_source="made-up prices",
        ),
        SentimentReport(**ids, **HEARD),
        Portfolio(**ids, account="main", cash=_usd("100000"), equity=_usd("100000")),
        Plan(
            **ids,
            objective="find a trend",
            assets=("AAPL", "GOOG", "IBM"),
            quant_question="which rise?",
            expected_outputs=("signal",),
        ),
        QuantReport(
            **ids,
            signal=QuantSignal.BULLISH,
            confidence=0.4,
            reasoning="two of three rise",
            assets=(
                _view("AAPL", QuantSignal.BULLISH),
                _view("GOOG", QuantSignal.BULLISH),
                _view("IBM", QuantSignal.BEARISH),
            ),
        ),
        ResearchReport(
            **ids,
            analysis_date=AS_OF,
            tickers=(_finding("AAPL", 3.8), _finding("GOOG", 8.1)),
            tool_calls_made=4,
        ),
        DailyPicks(
            **ids,
            llm="rules:rules",
            pick_date=AS_OF,
            picks=(_pick("AAPL", "60"), _pick("GOOG", "20")),
            confidence=0.5,
            market_summary="calm",
        ),
        DecisionValidation(
            **ids,
            passed=True,
            checks=(
                _check("research_evidence", "AAPL", RuleOutcome.KEPT, "a finding", "one"),
                _check("position_size", "AAPL", RuleOutcome.CUT, "60%", "40%"),
                _check("risk_needs_catalyst", "GOOG", RuleOutcome.VETOED, "8.1, no catalyst", "7"),
            ),
            decisions=(
                PortfolioDecision(
                    action=DecisionAction.BUY,
                    asset="AAPL",
                    quantity=Decimal("68.000000"),
                    price=_usd("584"),
                    allocation_pct=Decimal(40),
                    confidence=0.5,
                    reasoning="AAPL rises",
                    strategy_used="rules",
                ),
            ),
            vetoed_tickers=("GOOG",),
            proposal_hash="0" * 64,
            limits=AccountLimits(),
        ),
        ExecutionResult(
            **ids,
            account="main",
            orders=(
                Order(
                    order_id=ORDER_ID,
                    asset="AAPL",
                    side=Side.BUY,
                    quantity=Decimal(68),
                    status=OrderStatus.FILLED,
                ),
            ),
            fills=(
                Fill(
                    order_id=ORDER_ID,
                    asset="AAPL",
                    side=Side.BUY,
                    price=_usd("585.03"),
                    quantity=Decimal(68),
                    fee=_usd("19.89"),
                    session=date(2012, 7, 2),
                ),
            ),
            cash_before=_usd("100000"),
            cash_after=_usd("60198.07"),
        ),
    )
    return {snake(type(each).__name__): each for each in made}


@pytest.fixture
def cycle_view(contracts: dict[str, Contract]) -> CycleView:
    """A completed cycle of one pipeline."""
    pipeline = PipelineView(
        name="claude",
        account="main",
        provider="claude",
        state="memorizing",
        status=CycleStatus.COMPLETED,
        contracts={name: each.model_dump(mode="json") for name, each in contracts.items()},
    )
    causes = why_not.of(Reports.of(pipeline), pipeline.status)
    return CycleView(
        cycle_id=CYCLE_ID,
        kind="decision",
        as_of=AS_OF,
        status=CycleStatus.COMPLETED,
        requester="cli",
        accepted_at=ACCEPTED_AT,
        ended_at=ACCEPTED_AT + timedelta(seconds=1.5),
        tokens=12_400,
        cost_usd=Decimal("0.0312"),
        usage=USED,
        pipelines=(pipeline.model_copy(update={"not_bought": causes}),),
    )


DIGEST_ID, QUANT_ID = UUID(int=11), UUID(int=12)
CALLS = {
    "digest": (
        JournalEntry(
            index=0,
            kind=CallKind.READ,
            name="source screener",
            request_sha256="0" * 64,
            request={"as_of": "2012-06-29"},
            reply={"mentions": [{"ticker": "AAPL", "score": 1.0}, {"ticker": "IBM", "score": 0.7}]},
        ),
    ),
    "quant": (
        JournalEntry(
            index=0,
            kind=CallKind.TOOL,
            name="get_technical_indicators",
            request_sha256="0" * 64,
            request={"arguments": {"ticker": "AAPL"}},
            reply={"values": {"rsi_14": 55.5816}, "source": "made-up prices"},
            duration_ms=3,
        ),
        JournalEntry(
            index=1,
            kind=CallKind.READ,
            name="indicators IBM",
            request_sha256="0" * 64,
            request={"ticker": "IBM"},
            reply={"rows": [[n, n + 0.5] for n in range(10)]},
        ),
        JournalEntry(
            index=2,
            kind=CallKind.MODEL,
            name="claude:some-model",
            request_sha256="0" * 64,
            request={"agent": "quant"},
            reply={"text": "AAPL rises, so I say bullish", "tool_calls": []},
            usage=USED,
        ),
    ),
}


def _node(op_id: UUID, state: str, step: str, took_ms: int, tokens: int = 0) -> OperationView:
    return OperationView(
        op_id=op_id,
        cycle_id=CYCLE_ID,
        type="operation",
        name=step,
        status=OperationStatus.COMPLETED,
        pipeline="claude",
        state=state,
        service="research",
        tokens=tokens,
        cost_usd=Decimal("0.0312") if tokens else Decimal(0),
        usage=USED if tokens else Usage(),
        created_at=ACCEPTED_AT,
        started_at=ACCEPTED_AT,
        finished_at=ACCEPTED_AT + timedelta(milliseconds=took_ms),
    )


@pytest.fixture
def nodes() -> list[OperationView]:
    """The cycle's operations with their calls; the last one is the quant's."""
    digest = _node(DIGEST_ID, "scanning", "digest", 200)
    quant = _node(QUANT_ID, "analyzing", "quant", 800, tokens=12_400)
    calls = [
        parent.model_copy(
            update={"op_id": UUID(int=100 + n), "type": call.kind.value, "name": call.name}
        )
        for parent in (digest, quant)
        for n, call in enumerate(CALLS[parent.name])
    ]
    return [digest, *calls, quant]


@pytest.fixture
def records(contracts: dict[str, Contract]) -> list[Recording]:
    """What is on record of the two operations."""
    return [
        Recording(
            op_id=op_id,
            service="research",
            step=step,
            pipeline="claude",
            status="completed",
            result=contracts[made].model_dump(mode="json"),
            journal=CALLS[step],
        )
        for op_id, step, made in (
            (DIGEST_ID, "digest", "signal_digest"),
            (QUANT_ID, "quant", "quant_report"),
        )
    ]


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Spans as they would leave, with traces on."""
    spans: list[Any] = []

    class Kept:
        def __init__(self, **_: object) -> None: ...

        def export(self, given: Any) -> SpanExportResult:
            spans.extend(given)
            return SpanExportResult.SUCCESS

        def shutdown(self) -> None: ...

        def force_flush(self, _: int = 0) -> bool:
            return True

    monkeypatch.setattr(trace_exporter, "OTLPSpanExporter", Kept)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9/v1/traces")
    return spans
