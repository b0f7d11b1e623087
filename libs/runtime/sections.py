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
    """URL of your NATS server, or of a cluster's servers, separated by commas; `tls://` uses TLS.
    Not set: the embedded server."""
    replicas: int = Field(default=1, ge=1, le=5)
    """Copies of each stream, each on another server of a NATS cluster; 3 survive the loss of
    one."""


class PostgresSettings(Section):
    """The tables."""

    dsn: SecretStr | None = None
    """DSN of your Postgres. `sslmode=verify-full` uses TLS. With several hosts, separated by
    commas, `target_session_attrs=read-write` selects the primary. Not set: the embedded server."""
    bindir: Path | None = None
    """Directory of Postgres binaries for the embedded server, to use instead of the installed
    package's."""


class MarketSettings(Section):
    """Market data."""

    source: str = Field(default="replay", pattern="^(replay|yahoo|alpaca)$")
    """Source of market data: recorded (`replay`), live but unofficial (`yahoo`), or live with an
    Alpaca account (`alpaca`). Prices, listings and exchange rates always come from it; other data
    can have another source."""
    fundamentals: str | None = Field(default=None, pattern="^(replay|yahoo|edgar)$")
    """Source of company fundamentals, if not `market.source`."""
    events: str | None = Field(default=None, pattern="^(replay|edgar)$")
    """Source of company filings, if not `market.source`."""
    headlines: str | None = Field(default=None, pattern="^(replay|yahoo|alpaca)$")
    """Source of headlines, if not `market.source`."""
    calendar: str | None = Field(default=None, pattern="^(replay|yahoo)$")
    """Source of earnings dates, if not `market.source`."""
    replay_dir: Path | None = None
    """Directory of recorded market data. Not set: the data bundled with bokeh-sampledata."""
    jump_pct: float = Field(default=40.0, gt=0, le=10_000)
    """Largest normal move between two closes, in percent; larger moves without a split are
    flagged."""


class YahooSettings(Section):
    """The live source."""

    tickers: str = ""
    """Tickers to trade with Yahoo's data, separated by commas. Empty: Yahoo's screens of the newest
    session."""
    currencies: str = Field(default="USD,EUR,GBP,CHF", pattern="^([A-Za-z]{3}(,|$))*$")
    """Currencies whose exchange rates are read from Yahoo, separated by commas."""
    requests_per_s: float = Field(default=4.0, gt=0, le=50)
    """Most requests to Yahoo per second and process. Replicas each have this limit."""


class AlpacaSettings(Section):
    """Alpaca: its market data, and a paper account for orders."""

    data_key_file: Path | None = None
    """File with the key id and secret of an Alpaca account, for market data. Without it, Alpaca's
    data is not used."""
    data_requests_per_s: float = Field(default=2.5, gt=0, le=15)
    """Most data requests to Alpaca per second, by all processes that share a data directory; a free
    account allows 200 a minute. Services with separate data directories, such as containers, each
    have this limit."""
    data_url: str | None = Field(
        default=None, pattern=r"^https?://(127\.0\.0\.1|localhost)(:\d+)?/?$"
    )
    """Address on this machine to use instead of Alpaca's data host, for tests. Not set:
    https://data.alpaca.markets, the only other host that receives the key."""
    tickers: str = ""
    """Tickers to trade with Alpaca's data, separated by commas."""
    trading_key_file: Path | None = None
    """File with the key of a paper account: id and secret, one per line. Only the execution service
    reads it. Not set: only the simulated broker fills orders."""
    trading_url: str | None = Field(default=None, pattern="^https?://[^@]+$")
    """Address of a stand-in on this machine, to use instead of Alpaca's paper host; other addresses
    are refused. Not set: the paper host."""


class EdgarSettings(Section):
    """The SEC's filings."""

    contact: Contact | None = None
    """Your e-mail address for the SEC, optionally after a name. Each request to EDGAR carries it;
    it is never displayed. Without it, EDGAR is not used."""
    requests_per_s: float = Field(default=8.0, gt=0, le=10)
    """Most requests to EDGAR per second, by all processes that share a data directory; the SEC
    allows 10. Services with separate data directories, such as containers, each have this limit."""
    ciks: str = Field(default="", pattern=r"^([A-Za-z0-9.-]{1,15}=[0-9]{1,10}(,|$))*$")
    """CIK numbers of companies whose ticker changed, as FB=1326801, separated by commas. They
    override EDGAR's list."""
    url: str | None = Field(default=None, pattern="^https?://[^@]+$")
    """Address to use instead of EDGAR. Not set: the SEC's."""


class HttpSettings(Section):
    """The HTTP API and the pages."""

    enabled: bool = False
    """Serve the console over HTTP; `deskbus up` does, without --no-http."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """Address that HTTP listens on. One beyond loopback needs a token."""
    port: int = Field(default=8000, ge=0, le=65_535)
    """Port of the HTTP API; 0 takes any free one. Not set: 8000 or the next free one."""
    cert_file: Path | None = None
    """Certificate of HTTP over TLS: PEM, with its intermediate certificates."""
    key_file: Path | None = None
    """Private key of that certificate, PEM."""
    token: SecretStr | None = None
    """Token that HTTP callers must send (`Authorization: Bearer ...`); at least 16 characters."""
    token_file: Path | None = None
    """File with that token, instead of `http.token`."""
    streams_max: int = Field(default=50, ge=0, le=1_000)
    """Most event streams that one console serves at once; it refuses further ones, and they
    retry."""


class McpSettings(Section):
    """The MCP server."""

    token_file: Path | None = None
    """File with the token that callers of `deskbus mcp --http` must send. Not set: `mcp.token` in
    the secrets directory."""
    proposer_token: SecretStr | None = None
    """Token of the proposer for `deskbus mcp --propose` over standard input."""


class MetricsSettings(Section):
    """Metrics and health of each process."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """Address that metrics listen on. They need no token: beyond loopback, keep the address in a
    private network."""
    port: int | None = Field(default=None, ge=0, le=65_535)
    """Port where a process serves /metrics, /livez and /readyz without a token; 0 takes a free
    port. Processes of `deskbus up --processes` use this port and the next ones. Not set: no such
    port."""


class LogSettings(Section):
    """What is logged."""

    level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    """Lowest level that is logged."""
    format: str = Field(default="auto", pattern="^(auto|json|console)$")
    """Format of the log. `auto`: console on a terminal (a file with `deskbus up`), else json."""


class CandidateSettings(Section):
    """Candidates of a digest."""

    sources: str = "screener,news,earnings"
    """Candidate sources of a digest, by name, or your own as `package.module:Class`."""
    timeout_s: float = Field(default=60.0, gt=0, le=300)
    """Time limit of one candidate source. A digest continues without a source that is late."""


class CycleSettings(Section):
    """Cycles, and limits of those whose requests set none."""

    timeout_s: TimeLimit = TIMEOUT_S_DEFAULT
    """Default time limit of a cycle, if its request or job sets none."""
    strategy_timeout_s: TimeLimit = STRATEGY_TIMEOUT_S_DEFAULT
    """Default time limit of a strategy cycle."""
    running_max: int = Field(default=1_000, ge=1)
    """Most cycles in progress; a further request is rejected as `busy`."""
    rotation: tuple[Name, ...] = ()
    """Pipelines that take turns on account `main` in `deskbus cycle request`, one session each; the
    others trade their own accounts. Empty: the first pipeline of a request trades `main`."""

    def limit_s(self, kind: str) -> float:
        """The time limit of a cycle of this kind."""
        return self.strategy_timeout_s if kind == STRATEGY else self.timeout_s


class ModelSettings(Section):
    """Calls of models, and how their answers are used."""

    timeout_s: float = Field(default=MODEL_TIMEOUT_S, gt=0, le=MODEL_TIMEOUT_S_MAX)
    """Time limit of one model call; a longer one counts as failed."""
    silence_s: float = Field(default=MODEL_SILENCE_S, gt=0, le=MODEL_TIMEOUT_S_MAX)
    """Longest silence of an endpoint, before or during its reply; then the call counts as failed.
    Not applied to your own servers (vllm, ollama, llamacpp)."""
    step_limit_s: float = Field(default=900.0, gt=0, le=86_400)
    """Time limit of one model step with all its calls; the cycle has its own limit. It must fit two
    silent calls and a full one."""
    attempts_max: int = Field(default=5, ge=1, le=20)
    """Most tries of one model call while its endpoint is busy or not reachable."""
    wait_s_max: float = Field(default=60.0, ge=0, le=3600)
    """Longest wait between two tries, even if the endpoint requests more."""
    tool_rounds_max: int = Field(default=15, ge=0, le=100)
    """Most rounds of tool calls before a model must answer. 0: no tool calls; code reads the
    standard data for the analyst and the trader. For models without tool calling."""
    facts_max: int = Field(default=200, ge=10, le=FACTS_MAX)
    """Most facts in one model call; reasons cite them by name. A model with a small context window
    fits fewer."""
    research_tickers_max: int = Field(default=10, ge=1, le=10)
    """Most candidates that a plan may name and the analyst may research, of up to 25 in a
    digest."""
    plan_attempts_max: int = Field(default=3, ge=1, le=10)
    """Most tries at a valid plan; each quotes the errors of the last."""
    answer_attempts_max: int = Field(default=2, ge=1, le=10)
    """Most tries at every other answer of a model; each quotes the errors of the last."""
    trader_samples: int = Field(default=1, ge=1, le=SAMPLES_MAX)
    """Number of trader answers on the same evidence; only what most of them agree on is kept. 3
    answers cost about twice as much as 1."""
    recalibrated_from: int = Field(default=30, ge=0, le=STATED_MAX)
    """From this many known outcomes on, an account's buys are sized by the lower of two numbers:
    the stated confidence, and how often past buys with that confidence were right. 0: always by the
    stated confidence."""


class BudgetSettings(Section):
    """What models may use; a cycle's own limits stand in its request."""

    operation_tokens_max: int = Field(default=1_000_000, ge=0)
    """Most tokens of one operation (one attempt of one step)."""
    operation_cost_usd_max: Decimal = Field(default=Decimal(5), ge=0)
    """Most that the model calls of one operation may cost."""
    day_tokens_max: int = Field(default=20_000_000, ge=0)
    """Most tokens of all cycles in one UTC day."""
    day_cost_usd_max: Decimal = Field(default=Decimal(100), ge=0)
    """Most that the model calls of all cycles in one UTC day may cost."""


class ApprovalSettings(Section):
    """A person's word before execution."""

    timeout_s: float = Field(default=3_600.0, gt=0, le=604_800)
    """How long a proposal waits for approval before its cycle expires."""
    valid_s: float = Field(default=900.0, gt=0, le=86_400)
    """How long an approval is valid; execution is refused after that."""
    move_pct_max: Decimal = Field(default=Decimal(5), gt=0)
    """Largest move from the approved price when execution begins, in percent."""
    accounts: tuple[str, ...] = ()
    """Accounts where a person must approve every proposal, whatever the request says."""


class BrokerSettings(Section):
    """The paper broker."""

    starting_cash_usd: Decimal = Field(default=Decimal(100_000), gt=0)
    """Starting cash of a new paper account; converted at the day's rate for another currency."""
    fee_bps: Decimal = Field(default=Decimal(5), ge=0, le=1_000)
    """Fee of the paper broker and of backtests, in basis points of the traded value."""
    slippage_bps: Decimal = Field(default=Decimal(5), ge=0, le=1_000)
    """Slippage of the paper broker and of backtests against the open, in basis points."""
    volume_pct_max: Decimal | None = Field(default=None, gt=0, le=100)
    """Largest share of a session's volume that one fill takes, in percent. Not set: fills ignore
    volume. See docs/portfolio.md."""


class OrchestratorSettings(Section):
    """How the orchestrator and its services find lost work."""

    lease_s: float = Field(default=10.0, gt=0, le=600)
    """How long a claim is valid without a heartbeat."""
    epochs_max: int = Field(default=5, ge=1, le=100)
    """Most claims of one operation; then it FAILS as poison."""
    sweep_s: float = Field(default=0.5, gt=0, le=60)
    """Time between two searches for lost work."""
    resend_after_s: float = Field(default=2.0, gt=0, le=600)
    """Wait before an unanswered command is sent again; doubled each time."""
    resend_after_s_max: float = Field(default=30.0, gt=0, le=3600)
    """Longest wait before a command is sent again."""
    reply_timeout_s: float = Field(default=5.0, gt=0, le=60)
    """How long a service waits for the orchestrator's reply before it retries."""


class StudySettings(Section):
    """Studies."""

    cells_max: int = Field(default=2, ge=1, le=64)
    """Most study cells in progress. None starts while a live cycle is working."""
    rest_s_max: float = Field(default=60.0, ge=0, le=86_400)
    """Longest wait of a study cell's next step for working live cycles. 0: no wait."""
    answers_kept_s: float = Field(default=31_536_000.0, ge=86_400, le=315_360_000)
    """How long a study's model answers are kept. Any study reuses them without paying again; older
    ones are deleted."""


class AccountSettings(Section):
    """What is set for one account.

    `currency` is its own from its opening on. `benchmark` is what it is compared with: `cash`, a
    ticker, or `candidates`, equal parts of the candidates of its first decision. What `limits` does
    not set is as in `limits` of all.
    """

    currency: Currency = DEFAULT_CURRENCY
    benchmark: Benchmark = CANDIDATES
    limits: dict[Name, StrictBool | Decimal] = Field(default={})
