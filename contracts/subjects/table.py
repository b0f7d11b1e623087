"""All rows: AsyncAPI, schemas, permissions, streams and consumers are derived from these lists."""

from contracts.subjects.accounts import (
    ACCOUNT,
    EQUITY,
    IMPORT_HOLDINGS,
    LEADERBOARD,
    LIMIT_PREVIEW,
    MOVE_CASH,
    PERFORMANCE,
    PORTFOLIO,
    RISK,
    SET_LIMIT,
)
from contracts.subjects.approvals import ANSWER_PROPOSAL, APPROVALS, DECISIONS
from contracts.subjects.cycles import CANCEL_CYCLE, CYCLE, CYCLES, RECORDING, REQUEST_CYCLE
from contracts.subjects.events import EVENTS_AFTER, EVENTS_SINCE
from contracts.subjects.exits import EXIT_DISTANCES, EXIT_SIGNALS, HOLDINGS
from contracts.subjects.halts import HALT, HALTS, RESUME
from contracts.subjects.notices import (
    CHANNELS,
    KEEP_NOTICES,
    NOTIFICATIONS,
    SETTLE_NOTICES,
    TEST_CHANNEL,
)
from contracts.subjects.operations import OPERATION, OPERATIONS, SENT
from contracts.subjects.preflight import PROVIDERS, REACH
from contracts.subjects.proposals import PROPOSAL, PROPOSAL_LIMITS, PROPOSE
from contracts.subjects.reports import REPORT
from contracts.subjects.schedule import PAUSE_JOB, RESUME_JOB, RUN_JOB, SCHEDULE
from contracts.subjects.strategies import BODY_PART, KEEP_PART, STRATEGIES
from contracts.subjects.studies import (
    RUN_STUDY,
    STOP_STUDY,
    STUDIES,
    STUDY_CALLS,
    STUDY_CELLS,
    STUDY_SCORE,
)
from contracts.subjects.subject import AnySubject
from contracts.subjects.upkeep import BUDGET, DEAD_LETTERS, DISCARD_LETTER, RETRY_LETTER, STORING
from contracts.subjects.venue import BIND, CANCEL_ORDER, RECONCILE, VENUE, VENUE_ORDERS

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
    SET_LIMIT,
    BIND,
    RECONCILE,
    CANCEL_ORDER,
    PROPOSE,
)

OF_SERVICES: tuple[AnySubject, ...] = (
    KEEP_PART,
    BODY_PART,
    HOLDINGS,
    REPORT,
    KEEP_NOTICES,
    SETTLE_NOTICES,
)
"""What single services may ask besides: who trains keeps models, who backtests reads them, who
checks positions asks for what an account holds, who writes reports asks for what they say, and who
tells people asks for what is due.
"""

QUERIES: tuple[AnySubject, ...] = (
    PORTFOLIO,
    VENUE_ORDERS,
    VENUE,
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
    SENT,
    DEAD_LETTERS,
    ACCOUNT,
    EQUITY,
    RISK,
    LIMIT_PREVIEW,
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
    PROPOSAL,
    PROPOSAL_LIMITS,
)
"""What users may ask."""
