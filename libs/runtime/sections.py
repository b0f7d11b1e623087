"""The tables of settings by theme: what `Settings` is made of. Each is a table of deskbus.toml."""

from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StrictBool

from contracts.cycle import (
    SAMPLES_MAX,
    STRATEGY,
    STRATEGY_TIMEOUT_S_DEFAULT,
    TIMEOUT_S_DEFAULT,
    TimeLimit,
)
from contracts.memory import STATED_MAX
from contracts.performance import CANDIDATES, Benchmark
from contracts.types import Currency, Name
from libs.runtime.contact import Contact
from libs.runtime.model_settings import (
    FACTS_MAX,
    MODEL_SILENCE_S,
    MODEL_TIMEOUT_S,
    MODEL_TIMEOUT_S_MAX,
)

DEFAULT_CURRENCY = "USD"


class Section(BaseModel):
    """A table of settings. A mistyped name is refused. The text below a field is its meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class NatsSettings(Section):
    """The bus."""

    url: str | None = None
    """URL of your NATS server, or those of a cluster separated by commas; `tls://` speaks TLS.
    Not set: the embedded one."""
    replicas: int = Field(default=1, ge=1, le=5)
    """Copies of each stream, on as many servers of a NATS cluster: 3 outlive the loss of one."""


class PostgresSettings(Section):
    """The tables."""

    dsn: SecretStr | None = None
    """DSN of your Postgres. `sslmode=verify-full` speaks TLS; of several hosts, separated by
    commas, `target_session_attrs=read-write` finds the primary. Not set: the embedded one."""
    bindir: Path | None = None
    """A system Postgres' binaries for the embedded server."""


class MarketSettings(Section):
    """Market data."""

    source: str = Field(default="replay", pattern="^(replay|yahoo|alpaca)$")
    """Where market data comes from: recorded (`replay`), live and unofficial (`yahoo`), or live by
    an Alpaca account (`alpaca`). Prices, listings and rates always do; other kinds of data may have
    a source of their own."""
    fundamentals: str | None = Field(default=None, pattern="^(replay|yahoo|edgar)$")
    """Where companies' figures come from, if not from `market.source`."""
    events: str | None = Field(default=None, pattern="^(replay|edgar)$")
    """Where companies' filings come from, if not from `market.source`."""
    headlines: str | None = Field(default=None, pattern="^(replay|yahoo|alpaca)$")
    """Where headlines come from, if not from `market.source`."""
    calendar: str | None = Field(default=None, pattern="^(replay|yahoo)$")
    """Where earnings dates come from, if not from `market.source`."""
    replay_dir: Path | None = None
    """Recorded market data. Not set: the data bundled with bokeh-sampledata."""
    jump_pct: float = Field(default=40.0, gt=0, le=10_000)
    """Percent by which a close may differ from the one before; larger moves without a split are
    flagged."""


class YahooSettings(Section):
    """The live source."""

    tickers: str = ""
    """Yahoo's universe, separated by commas; empty takes Yahoo's screens of the newest session."""
    currencies: str = Field(default="USD,EUR,GBP,CHF", pattern="^([A-Za-z]{3}(,|$))*$")
    """Currencies whose rates into an account's own are asked of Yahoo, separated by commas."""
    requests_per_s: float = Field(default=4.0, gt=0, le=50)
    """How fast one process asks Yahoo; replicas do not share it."""


class AlpacaSettings(Section):
    """Alpaca: its market data, and a paper account for orders."""

    data_key_file: Path | None = None
    """A file with the key id and the secret of an Alpaca account, for market data. Without it
    Alpaca is not asked."""
    data_requests_per_s: float = Field(default=2.5, gt=0, le=15)
    """How fast all processes that share a data directory ask Alpaca for data together; a free
    account may ask 200 times a minute. Services with data directories of their own, such as
    containers, each take this much."""
    data_url: str | None = Field(
        default=None, pattern=r"^https?://(127\.0\.0\.1|localhost)(:\d+)?/?$"
    )
    """An address on this machine that answers in the place of Alpaca's data host, for tests. Not
    set: https://data.alpaca.markets, the only other host that is sent the key."""
    tickers: str = ""
    """The universe where prices come from Alpaca, separated by commas."""
    trading_key_file: Path | None = None
    """A file with the key of a paper account, its id and its secret on a line each. Only execution
    opens it. Not set: accounts are filled by the simulated broker alone."""
    trading_url: str | None = Field(default=None, pattern="^https?://[^@]+$")
    """A stand-in on this machine that answers in the place of Alpaca's paper host; any other
    address is refused. Not set: the paper host."""


class EdgarSettings(Section):
    """The SEC's filings."""

    contact: Contact | None = None
    """A mail address of yours that the SEC can write to, maybe with a name before it; it is sent
    with each request to EDGAR and shown nowhere. Without it EDGAR is not asked."""
    requests_per_s: float = Field(default=8.0, gt=0, le=10)
    """How fast all processes that share a data directory ask EDGAR together; the SEC allows 10. Of
    services with data directories of their own, such as containers, each takes this much."""
    ciks: str = Field(default="", pattern=r"^([A-Za-z0-9.-]{1,15}=[0-9]{1,10}(,|$))*$")
    """Companies' numbers by ticker that count above EDGAR's list, as FB=1326801, separated by
    commas: for tickers that changed."""
    url: str | None = Field(default=None, pattern="^https?://[^@]+$")
    """Another address that answers in EDGAR's place. Not set: the SEC's own."""


class HttpSettings(Section):
    """The HTTP API and the pages."""

    enabled: bool = False
    """Serve the console over HTTP; `deskbus up` does, without --no-http."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """Where HTTP listens; an address beyond loopback needs a token."""
    port: int = Field(default=8000, ge=0, le=65_535)
    """The port of the HTTP API; 0 takes any. Unset, it is 8000 or the next free one."""
    cert_file: Path | None = None
    """The certificate with which HTTP speaks TLS; PEM, with those that lead to its authority."""
    key_file: Path | None = None
    """The key of that certificate; PEM."""
    token: SecretStr | None = None
    """What HTTP callers must send (`Authorization: Bearer ...`); 16 characters or more."""
    token_file: Path | None = None
    """A file with that token instead."""
    streams_max: int = Field(default=50, ge=0, le=1_000)
    """Streams of events that one console feeds at once; a further one is told to come again."""


class McpSettings(Section):
    """The MCP server."""

    token_file: Path | None = None
    """What callers of `deskbus mcp --http` must send. Not set: `mcp.token` among the secrets."""
    proposer_token: SecretStr | None = None
    """The token of the proposer that `deskbus mcp --propose` serves over standard input."""


class MetricsSettings(Section):
    """Metrics and health of each process."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """Where they are answered; beyond loopback whoever reaches it may read, so keep it in a private
    network."""
    port: int | None = Field(default=None, ge=0, le=65_535)
    """Where a process answers /metrics, /livez and /readyz without a token; 0 takes a free port;
    processes of `deskbus up --processes` take this one and those after it. Not set:
    nowhere."""


class LogSettings(Section):
    """What is logged."""

    level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    """The least serious event that is logged."""
    format: str = Field(default="auto", pattern="^(auto|json|console)$")
    """How events are logged; auto is console on a terminal (of `deskbus up` a file), else json."""


class CandidateSettings(Section):
    """Candidates of a digest."""

    sources: str = "screener,news,earnings"
    """Where a digest's candidates come from, by name or as `package.module:Class` of your own."""
    timeout_s: float = Field(default=60.0, gt=0, le=300)
    """How long one candidate source may take; the digest continues without it."""


class CycleSettings(Section):
    """Cycles, and limits of those whose requests set none."""

    timeout_s: TimeLimit = TIMEOUT_S_DEFAULT
    """How long a cycle may take whose request, or job, sets no time limit."""
    strategy_timeout_s: TimeLimit = STRATEGY_TIMEOUT_S_DEFAULT
    """The same for strategy cycles."""
    running_max: int = Field(default=1_000, ge=1)
    """Cycles in progress; a request above it is rejected as busy."""
    rotation: tuple[Name, ...] = ()
    """Pipelines that take turns on account `main` in `deskbus cycle request`, one session each; the
    others trade their own. Empty: the first pipeline of a request trades `main`."""

    def limit_s(self, kind: str) -> float:
        """The time limit of a cycle of this kind."""
        return self.strategy_timeout_s if kind == STRATEGY else self.timeout_s


class ModelSettings(Section):
    """Calls of models, and how their answers are used."""

    timeout_s: float = Field(default=MODEL_TIMEOUT_S, gt=0, le=MODEL_TIMEOUT_S_MAX)
    """How long one model call may take before it counts as failed."""
    silence_s: float = Field(default=MODEL_SILENCE_S, gt=0, le=MODEL_TIMEOUT_S_MAX)
    """How long an endpoint may say nothing before the call counts as failed: before its reply
    begins, and within it. Does not count for servers of your own (vllm, ollama, llamacpp)."""
    step_limit_s: float = Field(default=900.0, gt=0, le=86_400)
    """How long a step that a model answers may take in all, with all of its calls; the cycle has a
    limit of its own. Two calls that say nothing and a whole one must fit."""
    attempts_max: int = Field(default=5, ge=1, le=20)
    """Tries of one model call while its endpoint is busy or cannot be reached."""
    wait_s_max: float = Field(default=60.0, ge=0, le=3600)
    """The longest wait between two tries, also where the endpoint asks for more."""
    tool_rounds_max: int = Field(default=15, ge=0, le=100)
    """Rounds of tool calls before a model must answer. 0: none, and code makes the standard reads
    of the analyst and the trader, for models that call no tools."""
    facts_max: int = Field(default=200, ge=10, le=FACTS_MAX)
    """Facts that one model call shows, whose names its reasons may give. A model with a small
    window has room for fewer."""
    research_tickers_max: int = Field(default=10, ge=1, le=10)
    """Candidates that a plan may name and the analyst may dig into, of up to 25 in a digest."""
    plan_attempts_max: int = Field(default=3, ge=1, le=10)
    """Tries at a valid plan; each quotes the errors of the one before."""
    answer_attempts_max: int = Field(default=2, ge=1, le=10)
    """Tries at every other answer of a model, in the same way."""
    trader_samples: int = Field(default=1, ge=1, le=SAMPLES_MAX)
    """Times that a model is asked what to trade on the same evidence; what most of its answers do
    not agree on is left out. 1: once. Three cost about twice the trader's step."""
    recalibrated_from: int = Field(default=30, ge=0, le=STATED_MAX)
    """Known outcomes of an account's buys from which on a buy is sized by the lower of its stated
    confidence and of how often came true what was stated as surely. 0: by the stated one alone."""


class BudgetSettings(Section):
    """What models may use; a cycle's own limits stand in its request."""

    operation_tokens_max: int = Field(default=1_000_000, ge=0)
    """Tokens that the calls of one operation (one attempt of one step) may use."""
    operation_cost_usd_max: Decimal = Field(default=Decimal(5), ge=0)
    """What the calls of one operation may cost."""
    day_tokens_max: int = Field(default=20_000_000, ge=0)
    """Tokens that all cycles of one UTC day may use."""
    day_cost_usd_max: Decimal = Field(default=Decimal(100), ge=0)
    """What all cycles of one UTC day may cost in model calls."""


class ApprovalSettings(Section):
    """A person's word before execution."""

    timeout_s: float = Field(default=3_600.0, gt=0, le=604_800)
    """How long a proposal waits for a person before its cycle ends as expired."""
    valid_s: float = Field(default=900.0, gt=0, le=86_400)
    """How long after an approval execution may still begin; a later one is refused."""
    move_pct_max: Decimal = Field(default=Decimal(5), gt=0)
    """How far a price may be from the approved one, in percent, when execution begins."""
    accounts: tuple[str, ...] = ()
    """Accounts that a person approves every proposal for, whatever the request asks."""


class BrokerSettings(Section):
    """The paper broker."""

    starting_cash_usd: Decimal = Field(default=Decimal(100_000), gt=0)
    """What a new paper account begins with, at the day's rate where its currency is another."""
    fee_bps: Decimal = Field(default=Decimal(5), ge=0, le=1_000)
    """The fee of the paper broker, and of backtests, in basis points of the traded value."""
    slippage_bps: Decimal = Field(default=Decimal(5), ge=0, le=1_000)
    """How much worse than the open paper broker and backtests fill, in basis points."""
    volume_pct_max: Decimal | None = Field(default=None, gt=0, le=100)
    """The most that one fill takes of a session's volume, in percent; not set: fills ignore volume.
    See docs/portfolio.md."""


class OrchestratorSettings(Section):
    """How the orchestrator and its services find lost work."""

    lease_s: float = Field(default=10.0, gt=0, le=600)
    """How long a claim holds without a sign of life."""
    epochs_max: int = Field(default=5, ge=1, le=100)
    """Claims of one operation before it is FAILED as poison."""
    sweep_s: float = Field(default=0.5, gt=0, le=60)
    """How often lost work is looked for."""
    resend_after_s: float = Field(default=2.0, gt=0, le=600)
    """How long an unanswered command waits before it is sent again; doubled at every sending."""
    resend_after_s_max: float = Field(default=30.0, gt=0, le=3600)
    """The longest wait between two sendings of a command."""
    reply_timeout_s: float = Field(default=5.0, gt=0, le=60)
    """How long a service waits for the orchestrator before it asks again."""


class StudySettings(Section):
    """Studies."""

    cells_max: int = Field(default=2, ge=1, le=64)
    """Cells of a study in progress. None begins while a live cycle is at work."""
    rest_s_max: float = Field(default=60.0, ge=0, le=86_400)
    """How long the next step of a study's cell waits for live cycles at work. 0: not at all."""
    answers_kept_s: float = Field(default=31_536_000.0, ge=86_400, le=315_360_000)
    """How long what a study has paid for is not paid again, by it or another one; older answers of
    models are deleted."""


class AccountSettings(Section):
    """What is set for one account.

    `currency` is its own from its opening on. `benchmark` is what it is compared with: `cash`, a
    ticker, or `candidates`, equal parts of the candidates of its first decision. What `limits` does
    not set is as in `limits` of all.
    """

    currency: Currency = DEFAULT_CURRENCY
    benchmark: Benchmark = CANDIDATES
    limits: dict[Name, StrictBool | Decimal] = Field(default={})
