"""Settings: the environment (`DESKBUS_...`) above `deskbus.toml` above the defaults."""

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StrictBool,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from contracts.account import AccountLimits
from contracts.cycle import (
    SAMPLES_MAX,
    STRATEGY,
    STRATEGY_TIMEOUT_S_DEFAULT,
    TIMEOUT_S_DEFAULT,
    TimeLimit,
)
from contracts.gate import STRICT, GateThresholds
from contracts.memory import STATED_MAX
from contracts.performance import CANDIDATES, Benchmark
from contracts.types import Currency, Name
from libs.runtime.contact import Contact
from libs.runtime.dsn import dsn_of
from libs.runtime.errors import DeskError
from libs.runtime.model_settings import (
    FACTS_MAX,
    MODEL_SILENCE_S,
    MODEL_TIMEOUT_S,
    MODEL_TIMEOUT_S_MAX,
    NO_RATE,
    RATES,
    EndpointName,
    EndpointSettings,
    Price,
    Rate,
    provider_names,
)
from libs.runtime.notify_settings import Notify
from libs.runtime.own_text import Unreadable, text_in, toml_in
from libs.runtime.schedule_settings import Schedule
from libs.runtime.wording import describe

SETTINGS_FILE = "deskbus.toml"
DEFAULT_CURRENCY = "USD"


class NoServers(DeskError):
    """A service was started without knowing where its servers are."""

    code = "no_servers"


def settings_in_file(path: Path = Path(SETTINGS_FILE)) -> dict[str, Any]:
    """The settings file as tables; empty where there is none. Raises Unreadable."""
    try:
        return toml_in(text_in(path))
    except FileNotFoundError:
        return {}
    except (Unreadable, OSError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from error


class Limits(AccountLimits):
    """Limits as they are set: a mistyped name is refused, for it would leave a limit as it was."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self)


class Fills(BaseModel):
    """Limits of the paper broker's fills."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    volume_pct_max: Decimal | None = Field(default=None, gt=0, le=100)

    def __str__(self) -> str:
        return f"volume_pct_max {self.volume_pct_max or 'not set'}"


class Cycles(BaseModel):
    """Limits of cycles whose requests set none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    timeout_s: TimeLimit = TIMEOUT_S_DEFAULT
    strategy_timeout_s: TimeLimit = STRATEGY_TIMEOUT_S_DEFAULT

    def limit_s(self, kind: str) -> float:
        """The time limit of a cycle of this kind."""
        return self.strategy_timeout_s if kind == STRATEGY else self.timeout_s

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in self)


class Gates(GateThresholds):
    """Thresholds as they are set: a mistyped name is refused. Those left out have the defaults of
    their profile: `strict` has stricter ones, any other name is the user's own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _strict_has_its_own_defaults(cls, values: object) -> object:
        if isinstance(values, Mapping) and values.get("profile") == STRICT.profile:
            return {**STRICT.model_dump(), **values}
        return values

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self if value is not None)


class Settings(BaseSettings):
    """Everything that can be set. Times end in _s, sizes in _bytes; money is US dollars."""

    model_config = SettingsConfigDict(env_prefix="DESKBUS_", extra="forbid", frozen=True)

    data_dir: Path = Path(".deskbus")
    """Where the embedded servers keep their data, and runtime.json says where the desk is."""
    nats_url: str | None = None
    """An own NATS server, or those of a cluster separated by commas; `tls://` speaks TLS. Not
    set: the embedded one."""
    nats_replicas: int = Field(default=1, ge=1, le=5)
    """Copies of each stream, on as many servers of a NATS cluster: 3 outlive the loss of one."""
    postgres_dsn: SecretStr | None = None
    """An own Postgres. `sslmode=verify-full` speaks TLS; of several hosts, separated by commas,
    `target_session_attrs=read-write` finds the primary. Not set: the embedded one."""
    secrets_dir: Path | None = None
    """Where nkeys, role passwords and `ca.pem`, the authorities that TLS believes, are. Not set:
    `secrets` below the data directory."""
    pg_bindir: Path | None = None
    """A system Postgres' binaries for the embedded server."""
    market: str = Field(default="replay", pattern="^(replay|yahoo)$")
    """Where market data comes from: recorded (`replay`), or live and unofficial (`yahoo`). Prices,
    listings and rates always do; other kinds of data may have a source of their own."""
    fundamentals: str | None = Field(default=None, pattern="^(replay|yahoo|edgar)$")
    """Where companies' figures come from, if not from `market`."""
    events: str | None = Field(default=None, pattern="^(replay|edgar)$")
    """Where companies' filings come from, if not from `market`."""
    headlines: str | None = Field(default=None, pattern="^(replay|yahoo)$")
    """Where headlines come from, if not from `market`."""
    calendar: str | None = Field(default=None, pattern="^(replay|yahoo)$")
    """Where earnings dates come from, if not from `market`."""
    replay_dir: Path | None = None
    """Recorded market data. Not set: the data bundled with bokeh-sampledata."""
    yahoo_tickers: str = ""
    """Yahoo's universe, separated by commas; empty takes Yahoo's screens of the newest session."""
    yahoo_currencies: str = Field(default="USD,EUR,GBP,CHF", pattern="^([A-Za-z]{3}(,|$))*$")
    """Currencies whose rates into an account's own are asked of Yahoo, separated by commas."""
    market_jump_pct: float = Field(default=40.0, gt=0, le=10_000)
    """Percent by which a close may differ from the one before; a larger step that no split explains
    is told with the prices."""
    yahoo_requests_per_s: float = Field(default=4.0, gt=0, le=50)
    """How fast one process asks Yahoo; replicas do not share it."""
    edgar_contact: Contact | None = None
    """A mail address of yours that the SEC can write to, maybe with a name before it; it is sent
    with each request to EDGAR and shown nowhere. Without it EDGAR is not asked."""
    edgar_requests_per_s: float = Field(default=8.0, gt=0, le=10)
    """How fast all processes that share a data directory ask EDGAR together; the SEC allows 10. Of
    services with data directories of their own, such as containers, each takes this much."""
    edgar_ciks: str = Field(default="", pattern=r"^([A-Za-z0-9.-]{1,15}=[0-9]{1,10}(,|$))*$")
    """Companies' numbers by ticker that count above EDGAR's list, as FB=1326801, separated by
    commas: for tickers that changed."""
    edgar_url: str | None = Field(default=None, pattern="^https?://[^@]+$")
    """Another address that answers in EDGAR's place. Not set: the SEC's own."""
    http: bool = False
    """Whether the console answers HTTP too; `deskbus up` does so unless it is told --no-http."""
    http_host: str = Field(default="127.0.0.1", min_length=1)
    """Where HTTP listens; an address beyond loopback needs a token."""
    http_port: int = Field(default=8000, ge=0, le=65_535)
    """The port of the HTTP API; 0 takes any. Unset, it is 8000 or the next free one."""
    http_cert_file: Path | None = None
    """The certificate with which HTTP speaks TLS; PEM, with those that lead to its authority."""
    http_key_file: Path | None = None
    """The key of that certificate; PEM."""
    http_token: SecretStr | None = None
    """What HTTP callers must send (`Authorization: Bearer ...`); 16 characters or more."""
    http_token_file: Path | None = None
    """A file with that token instead."""
    http_session_s: float = Field(default=43_200.0, ge=60, le=2_592_000)
    """How long a browser that was given the token is let in without it."""
    tail_clients_max: int = Field(default=50, ge=0, le=1_000)
    """Streams of events that one console feeds at once; a further one is told to come again."""
    mcp_token_file: Path | None = None
    """What callers of `deskbus mcp --http` must send. Not set: `mcp.token` among the secrets."""
    metrics_port: int | None = Field(default=None, ge=0, le=65_535)
    """Where a process answers /metrics, /livez and /readyz without a token; 0 takes a free port;
    processes of `deskbus up --processes` take this one and those after it. Not set:
    nowhere."""
    metrics_host: str = Field(default="127.0.0.1", min_length=1)
    """Where that listens; beyond loopback whoever reaches it may read, so keep it in a private
    network."""
    log_level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    """The least serious event that is logged."""
    log_format: str = Field(default="auto", pattern="^(auto|json|console)$")
    """How events are logged; auto is console on a terminal (of `deskbus up` a file), else json."""

    candidate_sources: str = "screener,news,earnings"
    """Where a digest's candidates come from, by name or as `package.module:Class` of your own."""
    candidate_source_timeout_s: float = Field(default=60.0, gt=0, le=300)
    """How long one candidate source may take; the digest continues without it."""

    lease_s: float = Field(default=10.0, gt=0, le=600)
    """How long a claim, or a notifier's lease, holds without a sign of life."""
    epochs_max: int = Field(default=5, ge=1, le=100)
    """Claims of one operation before it is FAILED as poison."""
    sweep_s: float = Field(default=0.5, gt=0, le=60)
    """How often lost work is looked for."""
    resend_after_s: float = Field(default=2.0, gt=0, le=600)
    """How long an unanswered command waits before it is sent again; doubled at every sending."""
    resend_after_s_max: float = Field(default=30.0, gt=0, le=3600)
    """The longest wait between two sendings of a command."""
    committers: int = Field(default=2, ge=1, le=16)
    """Groups that an orchestrator commits at the same time, each over a connection of its own."""
    group_max: int = Field(default=64, ge=1, le=1024)
    """Inputs the orchestrator commits in one transaction."""
    inputs_max: int = Field(default=4096, ge=1, le=100_000)
    """Inputs that may wait in an orchestrator; a caller may take up a quarter of them."""
    refusals_kept_per_minute_max: int = Field(default=60, ge=1, le=10_000)
    """Refused messages of one caller that are kept and told as events; more only answered."""
    cycles_recent_max: int = Field(default=1_000, ge=0, le=100_000)
    """Running cycles whose rows an orchestrator keeps in memory; others it reads again."""
    relay_batch_max: int = Field(default=500, ge=1, le=10_000)
    """Events the relay publishes before it moves its cursor."""
    relay_wait_s: float = Field(default=0.004, ge=0, le=1)
    """How long the relay lets events gather, where nobody waits for one of them."""
    relay_poll_s: float = Field(default=0.2, gt=0, le=5)
    """How long the relay sleeps when nothing is new."""
    reply_timeout_s: float = Field(default=5.0, gt=0, le=60)
    """How long a service waits for the orchestrator before it asks again."""
    cycles: Cycles = Cycles()
    """`timeout_s`, and for strategy cycles `strategy_timeout_s`: how long a cycle may take whose
    request, or job, sets no time limit."""
    cycles_running_max: int = Field(default=1_000, ge=1)
    """Cycles in progress; a request above it is rejected as busy."""
    trader_samples: int = Field(default=1, ge=1, le=SAMPLES_MAX)
    """Times that a model is asked what to trade on the same evidence; what most of its answers do
    not agree on is left out. 1: once. Three cost about twice the trader's step."""
    recalibrated_from: int = Field(default=30, ge=0, le=STATED_MAX)
    """Known outcomes of an account's buys from which on a buy is sized by the lower of its stated
    confidence and of how often came true what was stated as surely. 0: by the stated one alone."""
    study_cells_max: int = Field(default=2, ge=1, le=64)
    """Cells of a study in progress. None begins while a live cycle is at work."""
    study_rest_s_max: float = Field(default=60.0, ge=0, le=86_400)
    """How long the next step of a study's cell waits for live cycles at work. 0: not at all."""
    study_answers_kept_s: float = Field(default=31_536_000.0, ge=86_400, le=315_360_000)
    """How long what a study has paid for is not paid again, by it or another one; older answers of
    models are deleted."""

    approval_timeout_s: float = Field(default=3_600.0, gt=0, le=604_800)
    """How long a proposal waits for a person before its cycle ends as expired."""
    approval_valid_s: float = Field(default=900.0, gt=0, le=86_400)
    """How long after an approval execution may still begin; a later one is refused."""
    approval_move_pct_max: Decimal = Field(default=Decimal(5), gt=0)
    """How far a price may be from the approved one, in percent, when execution begins."""
    approval_accounts: tuple[str, ...] = ()
    """Accounts that a person approves every proposal for, whatever the request asks."""

    operation_tokens_max: int = Field(default=1_000_000, ge=0)
    """Tokens that the calls of one operation (one attempt of one step) may use."""
    operation_cost_usd_max: Decimal = Field(default=Decimal(5), ge=0)
    """What the calls of one operation may cost; a cycle's own limits stand in its request."""
    day_tokens_max: int = Field(default=20_000_000, ge=0)
    """Tokens that all cycles of one UTC day may use."""
    day_cost_usd_max: Decimal = Field(default=Decimal(100), ge=0)
    """What all cycles of one UTC day may cost in model calls."""
    tool_rounds_max: int = Field(default=15, ge=0, le=100)
    """Rounds of tool calls before a model must answer. 0: none, and code makes the standard reads
    of the analyst and the trader, for models that call no tools."""
    facts_max: int = Field(default=200, ge=10, le=FACTS_MAX)
    """Facts that one model call shows, whose names its reasons may give. A model with a small
    window has room for fewer; endpoints that bind schemas take no longer list of names than the
    most."""
    research_tickers_max: int = Field(default=10, ge=1, le=10)
    """Candidates that a plan may name and the analyst may dig into, of up to 25 in a digest."""
    plan_attempts_max: int = Field(default=3, ge=1, le=10)
    """Tries at a valid plan; each quotes the errors of the one before."""
    answer_attempts_max: int = Field(default=2, ge=1, le=10)
    """Tries at every other answer of a model, in the same way."""
    providers: dict[EndpointName, EndpointSettings] = Field(default_factory=dict)
    """Model endpoints beside or over the built-in ones, by the name that pipelines use; see
    docs/providers.md."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """US dollars for a million tokens, by model id, beside or over the built-in prices."""
    demo: bool = False
    """Whether this is the desk of `deskbus demo`: a provider `scripted` answers there in a model's
    place, at invented prices, and every page says so. Not for a desk of your own."""
    model_timeout_s: float = Field(default=MODEL_TIMEOUT_S, gt=0, le=MODEL_TIMEOUT_S_MAX)
    """How long one model call may take before it counts as failed."""
    model_silence_s: float = Field(default=MODEL_SILENCE_S, gt=0, le=MODEL_TIMEOUT_S_MAX)
    """How long an endpoint may say nothing before the call counts as failed: before its reply
    begins, and within it. Does not count for servers of your own (vllm, ollama, llamacpp)."""
    model_step_limit_s: float = Field(default=900.0, gt=0, le=86_400)
    """How long a step that a model answers may take in all, with all of its calls; the cycle has a
    limit of its own. Two calls that say nothing and a whole one must fit."""
    model_attempts_max: int = Field(default=5, ge=1, le=20)
    """Tries of one model call while its endpoint is busy or cannot be reached."""
    model_wait_s_max: float = Field(default=60.0, ge=0, le=3600)
    """The longest wait between two tries, also where the endpoint asks for more."""

    rotation: tuple[Name, ...] = ()
    """Pipelines that take turns on account `main` in `deskbus cycle request`, one session each; the
    others trade their own. Empty: the first pipeline of a request trades `main`."""
    starting_cash_usd: Decimal = Field(default=Decimal(100_000), gt=0)
    """What a new paper account begins with, at the day's rate where its currency is another."""
    account_currencies: dict[Name, Currency] = Field(default={})
    """Base currency of single accounts, by name, from their opening on; others are in USD."""
    fee_bps: Decimal = Field(default=Decimal(5), ge=0, le=1_000)
    """The fee of the paper broker, and of backtests, in basis points of the traded value."""
    slippage_bps: Decimal = Field(default=Decimal(5), ge=0, le=1_000)
    """How much worse than the open paper broker and backtests fill, in basis points."""

    fills: Fills = Fills()
    """`volume_pct_max`: the most that one fill takes of a session's volume, in percent; not set:
    fills ignore volume. See docs/portfolio.md."""

    limits: Limits = Limits()
    """What the rules enforce for every account; percent of its equity, reasons in docs/risk.md."""
    account_limits: dict[Name, dict[str, StrictBool | Decimal]] = Field(default={})
    """Other limits for single accounts, by name; what one does not set is as in `limits`."""

    benchmarks: dict[Name, Benchmark] = Field(default={})
    """What single accounts are compared with, by name: `cash`, a ticker, or `candidates`, equal
    parts of the candidates of the account's first decision, as of accounts that are not named."""

    strategies_dir: Path = Path("strategies")
    """Where strategies are exported to, as files that a person reads and edits."""
    exit_rules_file: Path = Path("exit_signals.toml")
    """Exit rules and stops of single positions; without the file only momentum and regime."""
    exit_signals_dir: Path | None = None
    """Where checks are saved as files. Not set: `exit_signals` below the data directory."""
    schedule: Schedule = Schedule()
    """Jobs that the desk runs by itself, and their clock; none by default. See docs/schedule.md."""
    notify: Notify = Notify()
    """What people are told, by which rules and over which channels; none by default. A channel's
    address is no setting but a secret: DESKBUS_NOTIFY_NAME, or `notify_NAME.url` among the secrets.
    """
    notices_kept_s: float = Field(default=2_592_000.0, ge=86_400, le=31_536_000)
    """How long it is remembered what people were told."""
    reports_dir: Path | None = None
    """Where daily reports are written. Not set: `reports` below the data directory."""
    gates: Gates = Gates()
    """What the strategy cycle's gates ask for; fractions, not percent. See docs/strategies.md."""

    @model_validator(mode="after")
    def _account_limits_are_limits(self) -> "Settings":
        for account in self.account_limits:
            try:
                self.limits_of(account)
            except ValidationError as error:
                wrong = describe(error, Limits)
                raise ValueError(f"account_limits.{account}: {wrong}") from error
        return self

    @model_validator(mode="after")
    def _attempts_fit_into_a_step(self) -> "Settings":
        """Two calls that hang cost no step: both, and one that takes its whole time, fit in."""
        own = {
            f"providers.{name}.timeout_s": (endpoint.timeout_s, endpoint.silence_s)
            for name, endpoint in self.providers.items()
        }
        for name, (timeout_s, silence_s) in {"model_timeout_s": (None, None), **own}.items():
            whole_s = timeout_s or self.model_timeout_s
            needed_s = whole_s + 2 * min(silence_s or self.model_silence_s, whole_s)
            if needed_s > self.model_step_limit_s:
                raise ValueError(
                    f"{name}: two calls that say nothing and a whole one take {needed_s:g} s, and "
                    f"a step may take {self.model_step_limit_s:g} s: set model_step_limit_s "
                    f"(DESKBUS_MODEL_STEP_LIMIT_S) to at least {needed_s:g}"
                )
        return self

    @model_validator(mode="after")
    def _stages_have_providers(self) -> "Settings":
        names = provider_names(self.providers, demo=self.demo)
        for name, endpoint in self.providers.items():
            for problem in endpoint.stage_problems(name, names):
                raise ValueError(problem)
        return self

    def limits_of(self, account: str) -> AccountLimits:
        """The limits in force for one account."""
        own = self.account_limits.get(account, {})
        merged = Limits.model_validate({**self.limits.model_dump(), **own})
        return AccountLimits.model_validate(merged.model_dump())

    def currency_of(self, account: str) -> str:
        """The currency that an account is opened in."""
        return self.account_currencies.get(account, DEFAULT_CURRENCY)

    def benchmark_of(self, account: str) -> str:
        """The benchmark of an account."""
        return self.benchmarks.get(account, CANDIDATES)

    def rate_of(self, provider: str) -> Rate:
        """The rate limit of a model endpoint: as it is set, else as for its preset."""
        endpoint = self.providers.get(provider) or EndpointSettings()
        return endpoint.rate or RATES.get(endpoint.preset or provider, NO_RATE)

    @property
    def secrets_path(self) -> Path:
        """The secrets directory in force."""
        return self.secrets_dir or self.data_dir / "secrets"

    @property
    def exit_signals_path(self) -> Path:
        """The directory of saved checks in force."""
        return self.exit_signals_dir or self.data_dir / "exit_signals"

    @property
    def reports_path(self) -> Path:
        """The directory of daily reports in force."""
        return self.reports_dir or self.data_dir / "reports"

    @property
    def nats_address(self) -> str:
        """The address of NATS; raises `NoServers` where neither settings nor the desk say."""
        if self.nats_url is None:
            raise NoServers("DESKBUS_NATS_URL is not set, and no embedded server was started")
        return self.nats_url

    @property
    def postgres_address(self) -> str:
        """The Postgres DSN, maybe with a password in it: for connecting, never for showing."""
        if self.postgres_dsn is None:
            raise NoServers("DESKBUS_POSTGRES_DSN is not set, and no embedded server was started")
        return self.postgres_dsn.get_secret_value()

    @property
    def postgres_public(self) -> str:
        """The Postgres DSN without user and password: for showing."""
        parts = urlsplit(self.postgres_address)
        return dsn_of(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings that differ from the defaults, as the environment of another process."""
        values = self.model_dump(mode="json", exclude_defaults=True)
        values["postgres_dsn"] = self.postgres_address
        for name in values:
            if isinstance(secret := getattr(self, name), SecretStr) and name != "postgres_dsn":
                values[name] = secret.get_secret_value()
        # Tables of settings travel as JSON, in which the environment is read.
        return {
            f"DESKBUS_{name.upper()}": json.dumps(value) if isinstance(value, dict) else str(value)
            for name, value in values.items()
        }

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment, then deskbus.toml in the working directory."""
        return init_settings, env_settings, InitSettingsSource(settings_cls, settings_in_file())
