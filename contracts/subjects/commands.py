"""The commands: what the orchestrator has each service do, and the contract that answers."""

from contracts.account import OpenBooks, Portfolio
from contracts.assessment import Memorize
from contracts.execution import ExecuteDecisions, ExecutionResult
from contracts.exit_signal import CheckExits, ExitReport
from contracts.memory import AgentMemory
from contracts.probe import MaskProbe, ProbeInputs
from contracts.report import DailyReport, WriteReport
from contracts.research import (
    AnswerQuestion,
    MakePlan,
    Plan,
    QuantReport,
    ResearchReport,
    ResearchTickers,
)
from contracts.risk import (
    DecisionValidation,
    PickReview,
    ReviewPicks,
    ValidateDecision,
    ValidateExits,
)
from contracts.sentiment import BuildDigest, ScoreSentiment, SentimentReport, SignalDigest
from contracts.strategy_cycle import (
    AssessStrategy,
    BacktestStrategy,
    DesignStrategy,
    StrategyDesign,
    TrainStrategy,
)
from contracts.strategy_result import BacktestResult, StrategyAssessment, TrainingResult
from contracts.subjects.subject import Answered, AnySubject, Asked, Class, Subject
from contracts.trader import DailyPicks, PickTrades


def command(
    service: str,
    what: str,
    message: type[Asked],
    reply: type[Answered],
    *,
    claimed: bool = False,
    must_answer: bool = False,
) -> Subject[Asked, Answered]:
    """A command's row."""
    return Subject(
        Class.COMMAND, service, what, message, reply, claimed=claimed, must_answer=must_answer
    )


BUILD_DIGEST = command("sentiment", "digest", BuildDigest, SignalDigest, claimed=True)
SCORE_SENTIMENT = command("sentiment", "sentiment", ScoreSentiment, SentimentReport, claimed=True)
OPEN_BOOKS = command("execution", "books", OpenBooks, Portfolio)
MAKE_PLAN = command("research", "plan", MakePlan, Plan, claimed=True)
ANSWER_QUESTION = command("research", "quant", AnswerQuestion, QuantReport, claimed=True)
RESEARCH_TICKERS = command("research", "analyst", ResearchTickers, ResearchReport, claimed=True)
PROBE_INPUTS = command("research", "probe", ProbeInputs, MaskProbe, claimed=True)
PICK_TRADES = command("trader", "picks", PickTrades, DailyPicks, claimed=True)
REVIEW_PICKS = command("risk", "review", ReviewPicks, PickReview, claimed=True)
VALIDATE_DECISION = command("risk", "validate", ValidateDecision, DecisionValidation, claimed=True)
PREVIEW_DECISION = command("risk", "preview", ValidateDecision, DecisionValidation, claimed=True)
"""The same work, and no decision: nothing that looks for decisions finds it."""
CHECK_EXITS = command("exit_signal", "check_exits", CheckExits, ExitReport, claimed=True)
VALIDATE_EXITS = command("risk", "validate_exits", ValidateExits, DecisionValidation)
EXECUTE_DECISIONS = command(
    "execution", "execute", ExecuteDecisions, ExecutionResult, must_answer=True
)
MEMORIZE = command("assessment", "memorize", Memorize, AgentMemory, claimed=True)
DESIGN_STRATEGY = command("strategy", "design", DesignStrategy, StrategyDesign, claimed=True)
TRAIN_STRATEGY = command("strategy", "train", TrainStrategy, TrainingResult, claimed=True)
BACKTEST_STRATEGY = command("strategy", "backtest", BacktestStrategy, BacktestResult, claimed=True)
ASSESS_STRATEGY = command("assessment", "assess", AssessStrategy, StrategyAssessment, claimed=True)
WRITE_REPORT = command("reporter", "report", WriteReport, DailyReport)

COMMANDS: tuple[AnySubject, ...] = (
    BUILD_DIGEST,
    SCORE_SENTIMENT,
    OPEN_BOOKS,
    MAKE_PLAN,
    ANSWER_QUESTION,
    RESEARCH_TICKERS,
    PROBE_INPUTS,
    PICK_TRADES,
    REVIEW_PICKS,
    VALIDATE_DECISION,
    PREVIEW_DECISION,
    CHECK_EXITS,
    VALIDATE_EXITS,
    EXECUTE_DECISIONS,
    MEMORIZE,
    DESIGN_STRATEGY,
    TRAIN_STRATEGY,
    BACKTEST_STRATEGY,
    ASSESS_STRATEGY,
    WRITE_REPORT,
)
