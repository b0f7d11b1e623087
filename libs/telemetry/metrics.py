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
    "Commands that a service has dealt with, by how that ended.",
    (
        SERVICE,
        SUBJECT,
        Label(
            "outcome",
            "answered, failed (with a reason), unanswered (a fault: it comes again), unreadable, "
            "not_on_record (a dead letter), not_yet_on_record (it comes again), ended (before), "
            "unclaimed (nobody granted it in time), not_granted, stopped (cancelled or lease lost)",
        ),
    ),
    SUBJECTS_MAX,
)
REDELIVERIES = Counter(
    "deskbus_commands_redelivered_total",
    "Commands that NATS delivered again, because nobody acknowledged them.",
    (SERVICE, SUBJECT),
)
COMMAND_SECONDS = Histogram(
    "deskbus_command_seconds",
    "How long a command's handler worked.",
    (SERVICE, SUBJECT),
    buckets=(*CALLS_S, 300.0),
)
LEASES_LOST = Counter(
    "deskbus_leases_lost_total",
    "Operations that a service stopped because they were no longer its own.",
    (SERVICE,),
)
QUESTIONS = Counter(
    "deskbus_questions_total",
    "Questions answered by request and reply.",
    (SUBJECT, Label("outcome", "answered, refused (with a reason), failed")),
    SUBJECTS_MAX,
)
QUESTION_SECONDS = Histogram(
    "deskbus_question_seconds", "How long the answer to a question took.", (SUBJECT,)
)
BUS_STORES = Gauge(
    "deskbus_bus_stores", "1 where NATS stores commands, 0 where it refuses: the disk is full, say."
)
PENDING = Gauge(
    "deskbus_consumer_pending", "Commands that no service has taken yet.", (SERVICE, SUBJECT)
)
DROPPED = Counter(
    "deskbus_dropped_messages_total",
    "Messages that were dropped unread and unanswered; the log names who sent them.",
    (
        Label(
            "why",
            "foreign_inbox (the answer would not go to who asked), overflow (its sender has too "
            "much waiting), no_command (what a pull brought is not from its consumer)",
        ),
    ),
)
REFUSALS_NOT_KEPT = Counter(
    "deskbus_refusals_not_kept_total",
    "Messages that were refused and, above their sender's rate, neither kept nor told as events.",
)
UNREADABLE = Counter(
    "deskbus_dead_letters_total",
    "Messages that were set aside because nobody could read them.",
    (SERVICE,),
)
NOT_ON_RECORD = Counter(
    "deskbus_commands_not_on_record_total",
    "Commands that were set aside because no operation on record stands behind them: forged.",
    (SERVICE,),
)

# --- the orchestrator -----------------------------------------------------------------------------

COMMIT_SECONDS = Histogram(
    "deskbus_commit_seconds", "How long one group of inputs took, from taking to commit."
)
COMMIT_RETRIES = Counter(
    "deskbus_commit_retries_total",
    "Groups that were folded again.",
    (Label("why", "raced (another orchestrator was first), postgres_lost"),),
)
INPUTS_WAITING = Gauge("deskbus_inputs_waiting", "Inputs that wait to be committed.")
INPUTS_REFUSED = Counter(
    "deskbus_inputs_refused_total", "Inputs that could not be stored; each is in the log."
)
ANSWERS = Counter(
    "deskbus_answers_total",
    "What the orchestrator answered.",
    (
        Label("question", "claim, record, result, request"),
        Label("outcome", "as the answer says: granted, busy, fenced, ok, accepted, rejected, ..."),
    ),
)
RESENT = Counter(
    "deskbus_sweep_resent_total",
    "Commands that the sweep sent again, because nobody answered them.",
    (SUBJECT,),
)
CELLS_RESUMED = Counter(
    "deskbus_study_commands_resumed_total",
    "Commands of studies' cells that were sent after they rested for live cycles.",
)
SWEPT_LATE = Counter(
    "deskbus_sweep_ended_total",
    "Late work that the sweep ended.",
    (Label("what", "operation, cycle"),),
)
UNANSWERED_EFFECTS = Counter(
    "deskbus_effects_unanswered_total",
    "Commands with an effect that the sweep has sent over and over without an answer.",
)

OUTAGE_SECONDS = Histogram(
    "deskbus_outage_seconds",
    "How long the desk's clock stood because nothing could be committed, once an outage has ended.",
    (
        Label(
            "away",
            "as its orchestrator saw it last: postgres, nats, desk (no orchestrator beat: it was "
            "stopped or frozen)",
        ),
    ),
    3,
    buckets=OUTAGES_S,
)

# --- cycles and operations ------------------------------------------------------------------------

CYCLES_ACCEPTED = Counter("deskbus_cycles_accepted_total", "Cycles that began.", (KIND,))
CYCLES = Counter(
    "deskbus_cycles_total",
    "Cycles that ended.",
    (KIND, Label("status", "completed, failed, cancelled, rejected, expired, ...")),
)
CYCLE_SECONDS = Histogram(
    "deskbus_cycle_seconds",
    "From a cycle's acceptance to its end, waiting for people included.",
    (KIND,),
    buckets=CYCLES_S,
)
OPERATIONS = Counter(
    "deskbus_operations_total",
    "Operations that ended.",
    (STEP, Label("status", "completed, failed, cancelled")),
    SUBJECTS_MAX,
)
FAILURES = Counter(
    "deskbus_failures_total",
    "Failed operations by the failure's code.",
    (Label("code", "as in the failure: timed_out, budget_exhausted, answer_invalid, ..."),),
)

# --- models and tools -----------------------------------------------------------------------------

MODEL_CALLS = Counter(
    "deskbus_model_calls_total",
    "Calls of models; one that failed and was made again counts twice.",
    (PROVIDER, STEP, Label("outcome", "ok, or the fault's code")),
    256,
)
MODEL_SECONDS = Histogram(
    "deskbus_model_call_seconds", "How long a model took.", (PROVIDER,), buckets=MODELS_S
)
MODEL_TOKENS = Counter(
    "deskbus_model_tokens_total",
    "Tokens that calls used.",
    (PROVIDER, Label("sort", "input, output, cache_read, cache_write, unsorted")),
)
MODEL_COST = Counter(
    "deskbus_model_cost_usd_total",
    "What calls cost, in US dollars; calls of a model without a price add nothing.",
    (PROVIDER, STEP),
    256,
)
MODEL_WAIT = Counter(
    "deskbus_model_wait_seconds_total",
    "How long calls waited for an endpoint's rate limit.",
    (PROVIDER,),
)

# --- market data ----------------------------------------------------------------------------------

MARKET_CALLS = Counter(
    "deskbus_market_calls_total",
    "Questions to a live market source.",
    (
        Label(
            "what",
            "chart, news, search, info, reports, calendar, screen; EDGAR: tickers, filings, facts; "
            "Alpaca: feed, bars, actions, news",
        ),
        Label("outcome", "kept (from the cache), ok, none (it has none), unavailable"),
    ),
)
MARKET_RESTS = Gauge(
    "deskbus_market_rests_seconds",
    "How long a live market source was to be left alone when it was asked last; 0: not at all.",
    (Label("source", "yahoo, edgar, alpaca"),),
)

# --- orders and books -----------------------------------------------------------------------------

ORDERS = Counter(
    "deskbus_orders_total",
    "Orders by what became of them.",
    (Label("side", "buy, sell"), Label("status", "placed, filled, rejected, cancelled")),
)
EQUITY = Gauge(
    "deskbus_account_equity", "An account's worth at its newest close.", (ACCOUNT, CURRENCY)
)
IMBALANCE = Gauge(
    "deskbus_ledger_imbalance",
    "Accounts whose books do not add up to zero; anything but 0 is a defect.",
)
HALTS = Gauge("deskbus_halts", "Halts that stand, of single accounts or of all.")

# --- what waits -----------------------------------------------------------------------------------

OPEN_CYCLES = Gauge("deskbus_cycles_running", "Cycles that run.", (KIND,))
APPROVALS_WAITING = Gauge("deskbus_approvals_waiting", "Proposals that wait for a person.")
OUTBOX = Gauge(
    "deskbus_outbox_operations", "Operations whose command nobody has claimed or answered yet."
)
OUTBOX_SECONDS = Gauge("deskbus_outbox_seconds", "How old the oldest of them is.")
UNPUBLISHED_SECONDS = Gauge(
    "deskbus_relay_seconds", "How old the oldest event is that is still to be published."
)
LETTERS = Gauge("deskbus_dead_letters_kept", "Dead letters that are kept.")
DAY_TOKENS_LIMIT = Gauge("deskbus_day_tokens_limit", "Tokens that a day may use.")
DAY_COST_LIMIT = Gauge("deskbus_day_cost_usd_limit", "What a day may cost, in US dollars.")
DAY_TOKENS_LEFT = Gauge("deskbus_day_tokens_left", "What is left of the day's tokens.")
DAY_COST_LEFT = Gauge(
    "deskbus_day_cost_usd_left", "What is left of the day's budget, in US dollars."
)

# --- messages to people ---------------------------------------------------------------------------

CHANNEL = Label("channel", "a channel's name, as in the settings")
NOTICES = Counter(
    "deskbus_notices_total",
    "Notices by the result of each try; one that failed and was tried again counts twice.",
    (CHANNEL, Label("outcome", "sent, failed, given_up")),
)
NOTICE_SECONDS = Histogram(
    "deskbus_notice_seconds",
    "From an event until the channel took it, digests and quiet hours included.",
    (CHANNEL,),
    buckets=NOTICES_S,
)
NOTICES_WAITING = Gauge(
    "deskbus_notices_waiting", "Notices of a channel on record that are not sent yet.", (CHANNEL,)
)
NOTICES_OVERDUE_SECONDS = Gauge(
    "deskbus_notices_overdue_seconds",
    "How long the oldest notice of a channel that should have been sent already has waited since "
    "then; 0 where there is none. Digests and quiet hours do not count.",
    (CHANNEL,),
)
NOTICE_FAILURES = Gauge(
    "deskbus_notice_failures",
    "Failed tries of the message that waits longest on a channel.",
    (CHANNEL,),
)

# --- processes ------------------------------------------------------------------------------------

HTTP = Counter(
    "deskbus_http_requests_total",
    "HTTP requests, refused ones too.",
    (
        Label("route", "the path's template; `unmatched` where there is none"),
        Label("method", "GET, POST, DELETE, ..."),
        Label("status", "the status code"),
    ),
    256,
)
HTTP_SECONDS = Histogram(
    "deskbus_http_seconds",
    "From a request to the beginning of its answer.",
    (Label("route", "as above"),),
)
READY = Gauge(
    "deskbus_ready",
    "1 where a check of readiness passes, else 0.",
    (Label("check", "what is asked: nats or postgres, and whose"),),
)
SAMPLES_FAILED = Counter(
    "deskbus_samples_failed_total",
    "Figures that could not be read for a scrape, and are left out of it.",
    (Label("sample", "which ones"),),
)


def all_metrics() -> Sequence[Metric]:
    """Every metric of this module, in the order of its declaration."""
    return [metric for metric in globals().values() if isinstance(metric, Metric)]
