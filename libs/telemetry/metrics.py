"""Every metric of the desk, in one table; docs/metrics.md is made from it.

Names begin with `deskbus_`; units stand last. No id, ticker or text is ever a label; subjects stand
as their template, with `*` for who asks or which cycle.
"""

from collections.abc import Sequence

from libs.telemetry.metric import CALLS_S, MODELS_S, Counter, Gauge, Histogram, Label, Metric

SUBJECTS_MAX = 240
"""Series of a metric by subject: there are some 30 commands and as many questions."""
ACCOUNTS_SHOWN_MAX = 20
"""Accounts that have series of their own; the others are added up as `other`, by currency."""
NOTICES_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 14_400, 86_400)
"""At once, after some tries, in a digest, after quiet hours."""
OUTAGES_S = (5, 15, 60, 300, 900, 3600, 14_400, 86_400)
CYCLES_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

SERVICE = Label("service", "the service's name")
SUBJECT = Label("subject", "the subject's template")
STEP = Label("step", "a step of a workflow")
KIND = Label("kind", "kind of cycle: decision, exit, strategy")
PROVIDER = Label("provider", "a pipeline's provider, as in the settings")
ACCOUNT = Label("account", f"the first {ACCOUNTS_SHOWN_MAX} accounts, the others as `other`")
CURRENCY = Label("currency", "the account's currency")

# --- the bus --------------------------------------------------------------------------------------

COMMANDS = Counter(
    "deskbus_commands_total",
    "Commands that a service has handled, by outcome.",
    (
        SERVICE,
        SUBJECT,
        Label(
            "outcome",
            "answered, failed (with a reason), unanswered (a fault: NATS sends it again), "
            "unreadable, not_on_record (a dead letter), not_yet_on_record (NATS sends it again), "
            "ended (before), unclaimed (no claim granted in time), not_granted, stopped "
            "(cancelled or lease lost)",
        ),
    ),
    SUBJECTS_MAX,
)
REDELIVERIES = Counter(
    "deskbus_commands_redelivered_total",
    "Commands that NATS delivered again because they were not acknowledged.",
    (SERVICE, SUBJECT),
)
COMMAND_SECONDS = Histogram(
    "deskbus_command_seconds",
    "Run time of a command's handler.",
    (SERVICE, SUBJECT),
    buckets=(*CALLS_S, 300.0),
)
LEASES_LOST = Counter(
    "deskbus_leases_lost_total",
    "Operations that a service stopped because it had lost their lease.",
    (SERVICE,),
)
QUESTIONS = Counter(
    "deskbus_questions_total",
    "Queries answered by request and reply.",
    (SUBJECT, Label("outcome", "answered, refused (with a reason), failed")),
    SUBJECTS_MAX,
)
QUESTION_SECONDS = Histogram("deskbus_question_seconds", "Time to answer a query.", (SUBJECT,))
BUS_STORES = Gauge(
    "deskbus_bus_stores", "1 if NATS stores commands, 0 if it refuses, for example on a full disk."
)
PENDING = Gauge(
    "deskbus_consumer_pending", "Commands that no service has taken yet.", (SERVICE, SUBJECT)
)
DROPPED = Counter(
    "deskbus_dropped_messages_total",
    "Messages dropped unread and without an answer; the log names their senders.",
    (
        Label(
            "why",
            "foreign_inbox (the reply would not go to the sender), overflow (too many messages of "
            "this sender wait), no_command (a pulled message is not from its consumer)",
        ),
    ),
)
REFUSALS_NOT_KEPT = Counter(
    "deskbus_refusals_not_kept_total",
    "Refused messages above their sender's rate: not kept, and no event published.",
)
UNREADABLE = Counter(
    "deskbus_dead_letters_total",
    "Messages set aside because they could not be read.",
    (SERVICE,),
)
NOT_ON_RECORD = Counter(
    "deskbus_commands_not_on_record_total",
    "Forged commands, set aside: no recorded operation has them.",
    (SERVICE,),
)

# --- the orchestrator -----------------------------------------------------------------------------

COMMIT_SECONDS = Histogram(
    "deskbus_commit_seconds", "Time of one group of inputs, from the queue to the commit."
)
COMMIT_RETRIES = Counter(
    "deskbus_commit_retries_total",
    "Groups of inputs that were processed again.",
    (Label("why", "raced (another orchestrator was first), postgres_lost"),),
)
INPUTS_WAITING = Gauge("deskbus_inputs_waiting", "Inputs waiting for a commit.")
INPUTS_REFUSED = Counter(
    "deskbus_inputs_refused_total", "Inputs that could not be stored; the log has each."
)
ANSWERS = Counter(
    "deskbus_answers_total",
    "The orchestrator's answers.",
    (
        Label("question", "claim, record, result, request"),
        Label("outcome", "as in the answer: granted, busy, fenced, ok, accepted, rejected, ..."),
    ),
)
RESENT = Counter(
    "deskbus_sweep_resent_total",
    "Commands that the sweep sent again because they had no answer.",
    (SUBJECT,),
)
CELLS_RESUMED = Counter(
    "deskbus_study_commands_resumed_total",
    "Commands of study cells that were sent after waiting for live cycles.",
)
SWEPT_LATE = Counter(
    "deskbus_sweep_ended_total",
    "Overdue work that the sweep ended.",
    (Label("what", "operation, cycle"),),
)
UNANSWERED_EFFECTS = Counter(
    "deskbus_effects_unanswered_total",
    "Commands with an effect that the sweep has sent many times without an answer.",
)

OUTAGE_SECONDS = Histogram(
    "deskbus_outage_seconds",
    "How long the desk's clock stood still in an outage without commits; measured at its end.",
    (
        Label(
            "away",
            "the cause, as the orchestrator last saw it: postgres, nats, desk (no heartbeat of an "
            "orchestrator: stopped or frozen)",
        ),
    ),
    3,
    buckets=OUTAGES_S,
)

# --- cycles and operations ------------------------------------------------------------------------

CYCLES_ACCEPTED = Counter("deskbus_cycles_accepted_total", "Cycles that were accepted.", (KIND,))
CYCLES = Counter(
    "deskbus_cycles_total",
    "Cycles that have ended.",
    (KIND, Label("status", "completed, failed, cancelled, rejected, expired, ...")),
)
CYCLE_SECONDS = Histogram(
    "deskbus_cycle_seconds",
    "Time from a cycle's acceptance to its end, with the wait for approval.",
    (KIND,),
    buckets=CYCLES_S,
)
OPERATIONS = Counter(
    "deskbus_operations_total",
    "Operations that have ended.",
    (STEP, Label("status", "completed, failed, cancelled")),
    SUBJECTS_MAX,
)
FAILURES = Counter(
    "deskbus_failures_total",
    "Failed operations by error code.",
    (Label("code", "as in the failure: timed_out, budget_exhausted, answer_invalid, ..."),),
)

# --- models and tools -----------------------------------------------------------------------------

MODEL_CALLS = Counter(
    "deskbus_model_calls_total",
    "Model calls; a failed call that was repeated counts twice.",
    (PROVIDER, STEP, Label("outcome", "ok, or the fault's code")),
    256,
)
MODEL_SECONDS = Histogram(
    "deskbus_model_call_seconds", "Time of a model call.", (PROVIDER,), buckets=MODELS_S
)
MODEL_TOKENS = Counter(
    "deskbus_model_tokens_total",
    "Tokens used by model calls.",
    (PROVIDER, Label("sort", "input, output, cache_read, cache_write, unsorted")),
)
MODEL_COST = Counter(
    "deskbus_model_cost_usd_total",
    "Cost of model calls in US dollars; calls of a model without a price add nothing.",
    (PROVIDER, STEP),
    256,
)
MODEL_WAIT = Counter(
    "deskbus_model_wait_seconds_total",
    "Time that calls waited for an endpoint's rate limit.",
    (PROVIDER,),
)

# --- market data ----------------------------------------------------------------------------------

MARKET_CALLS = Counter(
    "deskbus_market_calls_total",
    "Requests to a live market source.",
    (
        Label(
            "what",
            "chart, news, search, info, reports, calendar, screen; EDGAR: tickers, filings, facts; "
            "Alpaca: feed, bars, actions, news",
        ),
        Label("outcome", "kept (from the cache), ok, none (no such data), unavailable"),
    ),
)
MARKET_RESTS = Gauge(
    "deskbus_market_rests_seconds",
    "Pause before the next call to a live market source, as of the last call; 0: none.",
    (Label("source", "yahoo, edgar, alpaca"),),
)

# --- orders and books -----------------------------------------------------------------------------

ORDERS = Counter(
    "deskbus_orders_total",
    "Orders by status.",
    (Label("side", "buy, sell"), Label("status", "placed, filled, rejected, cancelled")),
)
EQUITY = Gauge(
    "deskbus_account_equity", "An account's equity at its newest close.", (ACCOUNT, CURRENCY)
)
IMBALANCE = Gauge(
    "deskbus_ledger_imbalance",
    "Accounts whose books do not sum to zero; any value but 0 is a defect.",
)
HALTS = Gauge("deskbus_halts", "Halts in force, of single accounts or of all accounts.")

# --- what waits -----------------------------------------------------------------------------------

OPEN_CYCLES = Gauge("deskbus_cycles_running", "Cycles that are running.", (KIND,))
APPROVALS_WAITING = Gauge("deskbus_approvals_waiting", "Proposals waiting for approval.")
OUTBOX = Gauge(
    "deskbus_outbox_operations", "Operations whose command is not yet claimed or answered."
)
OUTBOX_SECONDS = Gauge(
    "deskbus_outbox_seconds", "Age of the oldest operation of `deskbus_outbox_operations`."
)
UNPUBLISHED_SECONDS = Gauge("deskbus_relay_seconds", "Age of the oldest unpublished event.")
LETTERS = Gauge("deskbus_dead_letters_kept", "Dead letters kept.")
DAY_TOKENS_LIMIT = Gauge("deskbus_day_tokens_limit", "Daily token limit.")
DAY_COST_LIMIT = Gauge("deskbus_day_cost_usd_limit", "Daily cost limit in US dollars.")
DAY_TOKENS_LEFT = Gauge("deskbus_day_tokens_left", "Tokens left today.")
DAY_COST_LEFT = Gauge("deskbus_day_cost_usd_left", "Budget left today in US dollars.")

# --- messages to people ---------------------------------------------------------------------------

CHANNEL = Label("channel", "a channel's name, as in the settings")
NOTICES = Counter(
    "deskbus_notices_total",
    "Tries to send a notice, by result; a notice that failed and was sent again counts twice.",
    (CHANNEL, Label("outcome", "sent, failed, given_up")),
)
NOTICE_SECONDS = Histogram(
    "deskbus_notice_seconds",
    "Time from an event until the channel accepted it, with digests and quiet hours.",
    (CHANNEL,),
    buckets=NOTICES_S,
)
NOTICES_WAITING = Gauge(
    "deskbus_notices_waiting", "Recorded notices of a channel that are not sent yet.", (CHANNEL,)
)
NOTICES_OVERDUE_SECONDS = Gauge(
    "deskbus_notices_overdue_seconds",
    "How long a channel's oldest due notice is overdue; 0 if none is. Waiting for digests and "
    "quiet hours does not count.",
    (CHANNEL,),
)
NOTICE_FAILURES = Gauge(
    "deskbus_notice_failures",
    "Failed tries of a channel's longest waiting message.",
    (CHANNEL,),
)

# --- processes ------------------------------------------------------------------------------------

HTTP = Counter(
    "deskbus_http_requests_total",
    "HTTP requests, including refused ones.",
    (
        Label("route", "the path's template, or `unmatched`"),
        Label("method", "GET, POST, DELETE, ..."),
        Label("status", "the status code"),
    ),
    256,
)
HTTP_SECONDS = Histogram(
    "deskbus_http_seconds",
    "Time from a request to the start of its response.",
    (Label("route", "as above"),),
)
READY = Gauge(
    "deskbus_ready",
    "1 if a readiness check passes, else 0.",
    (Label("check", "the check: nats or postgres, and its process"),),
)
SAMPLES_FAILED = Counter(
    "deskbus_samples_failed_total",
    "Samples that could not be read for a scrape and are missing from it.",
    (Label("sample", "the sample's name"),),
)


def all_metrics() -> Sequence[Metric]:
    """Every metric of this module, in the order of its declaration."""
    return [metric for metric in globals().values() if isinstance(metric, Metric)]
