"""The subject table: every message on the bus, who sends it and who hears it.

AsyncAPI, JSON Schemas, NATS permissions, streams and consumers are all derived from it.

    desk.v1.<class>.<owner>.<what>[.<id or caller>]

`req` users to the orchestrator, and to execution for the kill switch; `cmd` the orchestrator to one
service; `evt` facts for anyone, the cycle id last; `ntc` those of them that people may be told of,
once more, for the notifier; `ctl` the orchestrator to every instance of a service; `qry` request
and reply; `dlq` messages that could not be read. `req` and `qry` end with
the caller's name, and only that caller may publish there: the name is who it is. Tickers never
stand in a subject.
"""

from dataclasses import dataclass
from enum import StrEnum
from types import NoneType
from typing import Any, Generic, TypeVar

from contracts.account import OpenBooks, Portfolio, PortfolioQuery
from contracts.approval import AnswerProposal, Approval, AwaitApproval
from contracts.assessment import Memorize
from contracts.audit import (
    NOTABLE_EVENTS,
    Event,
    Events,
    EventsAfter,
    EventsPage,
    EventsSince,
    EventType,
)
from contracts.body import BodyPart, KeepPart, PartKept, PartQuery
from contracts.capital import CashMoved, HoldingsImport, ImportHoldings, MoveCash
from contracts.cycle import CancelCycle, CycleRequest, RequestAnswer
from contracts.dead_letter import DiscardLetter, LetterAnswer, RetryLetter
from contracts.execution import ExecuteDecisions, ExecutionResult
from contracts.exit_signal import (
    CheckExits,
    CheckExitSignals,
    ExitDistances,
    ExitDistancesQuery,
    ExitReport,
    ExitSignals,
    Holdings,
    HoldingsQuery,
)
from contracts.halt import HaltAnswer, Halts, HaltsQuery, HaltTrading, ResumeTrading
from contracts.leaderboard import LeaderboardQuery, LeaderboardView
from contracts.memory import AgentMemory
from contracts.message import Message
from contracts.notice import (
    ChannelsQuery,
    ChannelsView,
    ChannelTested,
    KeepNotices,
    LeaseNotifier,
    NextNotices,
    NoticesKept,
    NoticesNext,
    NotificationsPage,
    NotificationsQuery,
    NotifierLease,
    TestChannel,
)
from contracts.operation import (
    CancelOperation,
    Claim,
    ClaimAnswer,
    Record,
    RecordAnswer,
    Result,
    ResultAnswer,
)
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.probe import MaskProbe, ProbeInputs
from contracts.provider import ProvidersQuery, ProvidersView
from contracts.query import (
    AccountQuery,
    AccountView,
    ApprovalsPage,
    ApprovalsQuery,
    BudgetQuery,
    BudgetView,
    CycleQuery,
    CyclesPage,
    CyclesQuery,
    CycleView,
    DeadLettersPage,
    DeadLettersQuery,
    DecisionsPage,
    DecisionsQuery,
    EquityQuery,
    EquityView,
    OperationDetail,
    OperationQuery,
    OperationsPage,
    OperationsQuery,
    Recording,
    RecordingQuery,
)
from contracts.reach import ReachQuery, ReachView
from contracts.report import DailyReport, ReportQuery, ReportView, WriteReport
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
from contracts.schedule import (
    JobAnswer,
    PauseJob,
    ResumeJob,
    RunJob,
    ScheduleQuery,
    ScheduleView,
)
from contracts.sentiment import BuildDigest, ScoreSentiment, SentimentReport, SignalDigest
from contracts.storing import Storing, StoringQuery
from contracts.strategy_cycle import (
    AssessStrategy,
    BacktestStrategy,
    DesignStrategy,
    StrategyDesign,
    TrainStrategy,
)
from contracts.strategy_query import StrategiesPage, StrategiesQuery
from contracts.strategy_result import BacktestResult, StrategyAssessment, TrainingResult
from contracts.study import (
    RunStudy,
    StopStudy,
    StudiesQuery,
    StudiesView,
    StudyAnswer,
    StudyCallsQuery,
    StudyCallsView,
    StudyCells,
    StudyCellsQuery,
)
from contracts.study_score import StudyScore, StudyScoreQuery
from contracts.trader import DailyPicks, PickTrades

PREFIX = "desk.v1"
ORCHESTRATOR = "orchestrator"


class Class(StrEnum):
    """The third token of a subject."""

    REQUEST = "req"
    COMMAND = "cmd"
    EVENT = "evt"
    NOTICE = "ntc"
    CONTROL = "ctl"
    QUERY = "qry"
    DEAD_LETTER = "dlq"


Asked = TypeVar("Asked", bound=Message)
Reply = TypeVar("Reply", bound=Message | None)
Answered = TypeVar("Answered", bound=Message)
"""Of a row that is answered; for whoever asks and whoever answers."""


@dataclass(frozen=True)
class Subject(Generic[Asked, Reply]):
    """One row: `message` travels to `owner` (or, for events, from it) and `reply` comes back.

    Whoever sends and whoever handles a row is checked against its two types. `reply` is `NoneType`
    where nobody answers, as an event; for commands it is the contract that the service's result
    must hold. `senders` are the identities that may publish it; empty for `qry` rows that any
    service may ask. `claimed` commands do paid or long work: they are claimed, journalled,
    acknowledged after the claim. `must_answer` commands have effects: no deadline, no cancel; sent
    until they are answered.
    """

    kind: Class
    owner: str
    what: str
    message: type[Asked]
    reply: type[Reply]
    senders: tuple[str, ...] = (ORCHESTRATOR,)
    claimed: bool = False
    must_answer: bool = False

    @property
    def address(self) -> str:
        """The subject without its last, variable token."""
        return f"{PREFIX}.{self.kind}.{self.owner}.{self.what}"

    @property
    def is_answered(self) -> bool:
        """True where a reply comes back."""
        return self.reply is not NoneType

    @property
    def gives(self) -> str:
        """The name under which later commands take this command's contract, e.g. `daily_picks`."""
        return snake(self.reply.__name__) if self.is_answered else ""

    @property
    def durable(self) -> str:
        """The durable consumer of a command."""
        return f"{self.owner}-{self.what}"

    def by(self, caller: str) -> str:
        """The whole subject: of a request or query by one caller, of an event of one cycle."""
        return f"{self.address}.{caller}"


AnySubject = Subject[Any, Any]
"""A row whose types do not matter: its address, its permissions, its place in the documents."""


def snake(name: str) -> str:
    """`DailyPicks` as `daily_picks`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


CLI = "cli"
USERS = (CLI, "user")
"""Identities of people and their programs: `cli` is ours, `user` is anyone's own code."""

WEB = "console"
"""The console's identity, in whose name it passes on what came over HTTP; it requests nothing of
its own accord."""
REQUESTERS = (*USERS, WEB)
MCP, MCP_REQUESTER = AGENTS = ("mcp", "mcp_requester")
"""Models of other programs, over MCP: both may ask what is listed with them; the second one may
request cycles too, where a person has said so. Neither can answer a proposal."""


def request(
    what: str,
    message: type[Asked],
    reply: type[Answered],
    senders: tuple[str, ...] = REQUESTERS,
) -> Subject[Asked, Answered]:
    """A row of what people ask the orchestrator to do."""
    return Subject(Class.REQUEST, ORCHESTRATOR, what, message, reply, senders)


REQUEST_CYCLE = request("cycle", CycleRequest, RequestAnswer, (*REQUESTERS, MCP_REQUESTER))
CANCEL_CYCLE = request("cancel", CancelCycle, RequestAnswer)
ANSWER_PROPOSAL = request("approval", AnswerProposal, RequestAnswer)
RETRY_LETTER = request("retry_letter", RetryLetter, LetterAnswer)
DISCARD_LETTER = request("discard_letter", DiscardLetter, LetterAnswer)
PAUSE_JOB = request("pause_job", PauseJob, JobAnswer)
RESUME_JOB = request("resume_job", ResumeJob, JobAnswer)
RUN_JOB = request("run_job", RunJob, JobAnswer)
RUN_STUDY = request("run_study", RunStudy, StudyAnswer)
STOP_STUDY = request("stop_study", StopStudy, StudyAnswer)
# To the owner of orders itself: the switch works with every other part of the desk down.
HALT = Subject(Class.REQUEST, "execution", "halt", HaltTrading, HaltAnswer, REQUESTERS)
RESUME = Subject(Class.REQUEST, "execution", "resume", ResumeTrading, HaltAnswer, REQUESTERS)
# An owner's money is moved by a person at the desk's own command line: by no program, no page and
# no model.
IMPORT_HOLDINGS = Subject(
    Class.REQUEST, "execution", "import_holdings", ImportHoldings, HoldingsImport, (CLI,)
)
MOVE_CASH = Subject(Class.REQUEST, "execution", "move_cash", MoveCash, CashMoved, (CLI,))

REQUESTS: tuple[AnySubject, ...] = (
    REQUEST_CYCLE,
    CANCEL_CYCLE,
    ANSWER_PROPOSAL,
    RETRY_LETTER,
    DISCARD_LETTER,
    PAUSE_JOB,
    RESUME_JOB,
    RUN_JOB,
    RUN_STUDY,
    STOP_STUDY,
    HALT,
    RESUME,
    IMPORT_HOLDINGS,
    MOVE_CASH,
)


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
CHECK_EXITS = command("exit_signal", "check_exits", CheckExits, ExitReport, claimed=True)
VALIDATE_EXITS = command("risk", "validate_exits", ValidateExits, DecisionValidation)
EXECUTE_DECISIONS = command(
    "execution", "execute", ExecuteDecisions, ExecutionResult, must_answer=True
)
MEMORIZE = command("assessment", "memorize", Memorize, AgentMemory, claimed=True)
DESIGN_STRATEGY = command("strategy_design", "design", DesignStrategy, StrategyDesign, claimed=True)
TRAIN_STRATEGY = command("strategy_training", "train", TrainStrategy, TrainingResult, claimed=True)
BACKTEST_STRATEGY = command(
    "strategy_backtest", "backtest", BacktestStrategy, BacktestResult, claimed=True
)
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

APPROVAL = Subject(Class.COMMAND, ORCHESTRATOR, "approval", AwaitApproval, Approval)
"""What a person answers, not a service: an operation like any other, but nothing is published."""

CLAIM = Subject(Class.QUERY, ORCHESTRATOR, "claim", Claim, ClaimAnswer, ())
RECORD = Subject(Class.QUERY, ORCHESTRATOR, "record", Record, RecordAnswer, ())
RESULT = Subject(Class.QUERY, ORCHESTRATOR, "result", Result, ResultAnswer, ())
KEEP_PART = Subject(
    Class.QUERY, ORCHESTRATOR, "keep_part", KeepPart, PartKept, ("strategy_training",)
)
BODY_PART = Subject(
    Class.QUERY, ORCHESTRATOR, "body_part", PartQuery, BodyPart, ("strategy_backtest",)
)
PORTFOLIO = Subject(Class.QUERY, "execution", "portfolio", PortfolioQuery, Portfolio, USERS)
EXIT_SIGNALS = Subject(
    Class.QUERY, "exit_signal", "check", CheckExitSignals, ExitSignals, (*REQUESTERS, *AGENTS)
)
EXIT_DISTANCES = Subject(
    Class.QUERY, "exit_signal", "distances", ExitDistancesQuery, ExitDistances, REQUESTERS
)
HOLDINGS = Subject(Class.QUERY, "execution", "holdings", HoldingsQuery, Holdings, ("exit_signal",))
REPORT = Subject(Class.QUERY, "console", "report", ReportQuery, ReportView, (*USERS, "reporter"))
NOTIFIER = "notifier"
"""Who tells people: it hears no commands, and asks what is due and what was sent."""
LEASE_NOTIFIER = Subject(
    Class.QUERY, ORCHESTRATOR, "lease_notifier", LeaseNotifier, NotifierLease, (NOTIFIER,)
)
KEEP_NOTICES = Subject(
    Class.QUERY, ORCHESTRATOR, "keep_notices", KeepNotices, NoticesKept, (NOTIFIER,)
)
NEXT_NOTICES = Subject(
    Class.QUERY, ORCHESTRATOR, "next_notices", NextNotices, NoticesNext, (NOTIFIER,)
)
OF_SERVICES: tuple[AnySubject, ...] = (
    *(KEEP_PART, BODY_PART, HOLDINGS, REPORT),
    *(LEASE_NOTIFIER, KEEP_NOTICES, NEXT_NOTICES),
)
"""What single services may ask besides: who trains keeps models, who backtests reads them, who
checks positions asks for what an account holds, who writes reports asks for what they say, and who
tells people asks for what is due.
"""
PROVIDERS = Subject(
    *(Class.QUERY, "sentiment", "providers", ProvidersQuery, ProvidersView),
    (*USERS, WEB, ORCHESTRATOR),
)
TEST_CHANNEL = Subject(Class.QUERY, NOTIFIER, "test", TestChannel, ChannelTested, (CLI, WEB))
CHANNELS = Subject(Class.QUERY, NOTIFIER, "channels", ChannelsQuery, ChannelsView, (*USERS, WEB))
REACH = Subject(Class.QUERY, "sentiment", "reach", ReachQuery, ReachView, (*USERS, ORCHESTRATOR))


def console(
    what: str, message: type[Asked], reply: type[Answered], *, agents: bool = False
) -> Subject[Asked, Answered]:
    """A question that the console answers from its read-only view of the tables."""
    senders = (*USERS, *AGENTS) if agents else USERS
    return Subject(Class.QUERY, "console", what, message, reply, senders)


EVENTS_AFTER = console("events", EventsAfter, Events)
EVENTS_SINCE = console("events_since", EventsSince, EventsPage)
CYCLE = console("cycle", CycleQuery, CycleView, agents=True)
CYCLES = console("cycles", CyclesQuery, CyclesPage, agents=True)
OPERATIONS = console("operations", OperationsQuery, OperationsPage, agents=True)
OPERATION = console("operation", OperationQuery, OperationDetail, agents=True)
DEAD_LETTERS = console("dead_letters", DeadLettersQuery, DeadLettersPage)
ACCOUNT = console("account", AccountQuery, AccountView, agents=True)
EQUITY = console("equity", EquityQuery, EquityView)
HALTS = console("halts", HaltsQuery, Halts)
RECORDING = console("recording", RecordingQuery, Recording)
APPROVALS = console("approvals", ApprovalsQuery, ApprovalsPage)
DECISIONS = console("decisions", DecisionsQuery, DecisionsPage, agents=True)
BUDGET = console("budget", BudgetQuery, BudgetView)
LEADERBOARD = console("leaderboard", LeaderboardQuery, LeaderboardView)
PERFORMANCE = console("performance", PerformanceQuery, PerformanceView)
STRATEGIES = console("strategies", StrategiesQuery, StrategiesPage)
SCHEDULE = console("schedule", ScheduleQuery, ScheduleView)
STORING = console("storing", StoringQuery, Storing)
STUDIES = console("studies", StudiesQuery, StudiesView)
STUDY_SCORE = console("study_score", StudyScoreQuery, StudyScore)
STUDY_CELLS = console("study_cells", StudyCellsQuery, StudyCells)
STUDY_CALLS = console("study_calls", StudyCallsQuery, StudyCallsView)
NOTIFICATIONS = console("notifications", NotificationsQuery, NotificationsPage)

QUERIES: tuple[AnySubject, ...] = (
    PORTFOLIO,
    EXIT_SIGNALS,
    EXIT_DISTANCES,
    PROVIDERS,
    REACH,
    EVENTS_AFTER,
    EVENTS_SINCE,
    CYCLE,
    CYCLES,
    OPERATIONS,
    OPERATION,
    DEAD_LETTERS,
    ACCOUNT,
    EQUITY,
    HALTS,
    RECORDING,
    APPROVALS,
    DECISIONS,
    BUDGET,
    LEADERBOARD,
    PERFORMANCE,
    STRATEGIES,
    REPORT,
    SCHEDULE,
    STORING,
    STUDIES,
    STUDY_SCORE,
    STUDY_CELLS,
    STUDY_CALLS,
    NOTIFICATIONS,
    TEST_CHANNEL,
    CHANNELS,
)
"""What users may ask."""

STOP = Subject(Class.CONTROL, "*", "cancel", CancelOperation, NoneType)
"""Sent to every instance of the service that takes the owner's place."""


def event(owner: str, what: EventType) -> Subject[Event, None]:
    """An event's row."""
    return Subject(Class.EVENT, owner, what, Event, NoneType)


EXECUTION_EVENTS = (
    EventType.ORDER_PLACED,
    EventType.ORDER_FILLED,
    EventType.ORDER_REJECTED,
    EventType.ORDER_CANCELLED,
    EventType.POSITION_UNPRICED,
    EventType.TRADING_HALTED,
    EventType.TRADING_RESUMED,
    EventType.HOLDINGS_IMPORTED,
    EventType.CASH_DEPOSITED,
    EventType.CASH_WITHDRAWN,
)
EVENTS = tuple(
    event("execution" if what in EXECUTION_EVENTS else ORCHESTRATOR, what) for what in EventType
)

NOTICES = tuple(
    Subject(Class.NOTICE, row.owner, row.what, Event, NoneType)
    for row in EVENTS
    if row.what in NOTABLE_EVENTS
)
"""Events that people may be told of, as the notifier hears them."""
NOTICE_DURABLE = NOTIFIER
"""The durable consumer of the notices, which all notifiers share."""
