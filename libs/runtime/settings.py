"""Settings: the environment (`DESKBUS_...`) above `deskbus.toml` above the defaults.

A setting `http.port` is `port` in the table `[http]` of the file, and DESKBUS_HTTP_PORT in the
environment.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, SecretStr, TypeAdapter, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from contracts.account import AccountLimits
from contracts.gate import STRICT, GateThresholds
from contracts.plugins import ExitPluginNames, PluginNames, ToolPluginNames
from contracts.types import Name
from libs.runtime import sections
from libs.runtime.dsn import dsn_of
from libs.runtime.errors import DeskError
from libs.runtime.model_settings import (
    NO_RATE,
    RATES,
    EndpointName,
    EndpointSettings,
    Price,
    Rate,
    provider_names,
)
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.notify_settings import Notify
from libs.runtime.own_text import UnreadableFile, text_in, toml_in
from libs.runtime.schedule_settings import Schedule
from libs.runtime.wording import describe

SETTINGS_FILE = "deskbus.toml"
PREFIX = "DESKBUS_"
NO_SETTINGS = frozenset(
    (
        "CI",
        "CPUS",
        "GID",
        "GRAFANA_PORT",
        "IMAGE",
        "IN_BACKGROUND",
        "LISTEN",
        "MEMORY",
        "NATS_PORT",
        "READY_FILE",
        "UID",
    )
)
"""Variables of tests, containers and the desk's own processes that begin like settings."""


class NoServers(DeskError):
    """A service was started without the addresses of its servers."""

    code = "no_servers"


class WrongSetting(DeskError):
    """A setting is unknown, or its value is invalid."""

    code = "wrong_setting"


def settings_in_file(path: Path = Path(SETTINGS_FILE)) -> dict[str, Any]:
    """The settings file as tables; empty where there is none. Raises UnreadableFile."""
    try:
        return toml_in(text_in(path))
    except FileNotFoundError:
        return {}
    except (UnreadableFile, OSError) as error:
        raise UnreadableFile(f"{path} cannot be read: {error}") from error


class LimitSettings(AccountLimits):
    """Limits as they are set: a mistyped name is refused, for it would leave a limit as it was."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self)


def limits_with(limits: AccountLimits, name: str, value: object) -> LimitSettings:
    """The limits with another value of one. Raises WrongSetting that says what is wrong with it."""
    try:
        return LimitSettings.model_validate({**limits.model_dump(), name: value})
    except ValidationError as error:
        raise WrongSetting(f"limits.{describe(error, LimitSettings)}") from error


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

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="_",
        env_nested_max_split=1,
        extra="forbid",
        frozen=True,
    )

    data_dir: Path = Path(".deskbus")
    """Directory of the embedded servers' data and of runtime.json, which holds the desk's
    address."""
    secrets_dir: Path | None = None
    """Directory of nkeys, role passwords and `ca.pem` (the CAs that TLS trusts). Not set: `secrets`
    in the data directory."""
    strategies_dir: Path = Path("strategies")
    """Directory for exported strategies, as files that you can read and edit."""
    exit_rules_file: Path = Path("exit_signals.toml")
    """File with exit rules and stops for single positions. Without it, only the momentum and regime
    rules apply."""
    exit_signals_dir: Path | None = None
    """Directory for saved exit checks. Not set: `exit_signals` in the data directory."""
    reports_dir: Path | None = None
    """Directory for daily reports. Not set: `reports` in the data directory."""
    plugins: PluginNames = ()
    """Your own risk rules for buys, each as `package.module:function`; see docs/plug-ins.md."""
    exit_plugins: ExitPluginNames = ()
    """Your own exit rules, each as `package.module:function`."""
    tool_plugins: ToolPluginNames = ()
    """Your own read-only tools for models, each as `package.module:function`."""
    demo: bool = False
    """Set by `deskbus demo`: the provider `scripted` replaces a model, its prices are invented, and
    every page says so. Do not set it for your own desk."""

    nats: sections.NatsSettings = sections.NatsSettings()
    postgres: sections.PostgresSettings = sections.PostgresSettings()
    market: sections.MarketSettings = sections.MarketSettings()
    yahoo: sections.YahooSettings = sections.YahooSettings()
    alpaca: sections.AlpacaSettings = sections.AlpacaSettings()
    edgar: sections.EdgarSettings = sections.EdgarSettings()
    http: sections.HttpSettings = sections.HttpSettings()
    mcp: sections.McpSettings = sections.McpSettings()
    metrics: sections.MetricsSettings = sections.MetricsSettings()
    log: sections.LogSettings = sections.LogSettings()
    candidates: sections.CandidateSettings = sections.CandidateSettings()
    cycles: sections.CycleSettings = sections.CycleSettings()
    model: sections.ModelSettings = sections.ModelSettings()
    providers: dict[EndpointName, EndpointSettings] = {}
    """Model endpoints by the name that pipelines use. They add to or replace the built-in ones; see
    docs/providers.md."""
    prices: dict[str, Price] = {}
    """US dollars per million tokens, by model id. They add to or replace the built-in prices."""
    budget: sections.BudgetSettings = sections.BudgetSettings()
    approval: sections.ApprovalSettings = sections.ApprovalSettings()
    broker: sections.BrokerSettings = sections.BrokerSettings()
    limits: LimitSettings = LimitSettings()
    """Risk limits of every account, in percent of its equity; see docs/risk.md."""
    accounts: dict[Name, sections.AccountSettings] = {}
    """Settings of single accounts, by name: `currency`, fixed when the account opens (default USD);
    `benchmark`: `cash`, a ticker, or `candidates` (equal parts of the candidates of its first
    decision); `limits`: limits not given here come from `limits`."""
    gates: Gates = Gates()
    """Thresholds of the strategy cycle's gates, as fractions, not percent. See
    docs/strategies.md."""
    orchestrator: sections.OrchestratorSettings = sections.OrchestratorSettings()
    study: sections.StudySettings = sections.StudySettings()
    schedule: Schedule = Schedule()
    """Scheduled jobs and their clock; none by default. See docs/schedule.md."""
    notify: Notify = Notify()
    """Notifications: channels, rules, and how long sent messages are kept (`kept_s`); none by
    default. A channel's address is a secret, not a setting: DESKBUS_NOTIFY_NAME, or the file
    `notify_NAME.url` in the secrets directory."""

    @model_validator(mode="after")
    def _limits_of_accounts_are_limits(self) -> Self:
        for account in self.accounts:
            try:
                self.limits_of(account)
            except ValidationError as error:
                wrong = describe(error, LimitSettings)
                raise ValueError(f"accounts.{account}.limits: {wrong}") from error
        return self

    @model_validator(mode="after")
    def _attempts_fit_into_a_step(self) -> Self:
        """Two calls that hang cost no step: both, and one that takes its whole time, fit in."""
        model = self.model
        own = {
            f"providers.{name}.timeout_s": (endpoint.timeout_s, endpoint.silence_s)
            for name, endpoint in self.providers.items()
        }
        for name, (timeout_s, silence_s) in {"model.timeout_s": (None, None), **own}.items():
            whole_s = timeout_s or model.timeout_s
            needed_s = whole_s + 2 * min(silence_s or model.silence_s, whole_s)
            if needed_s > model.step_limit_s:
                raise ValueError(
                    f"{name}: two calls without a reply and a full one take {needed_s:g} s, but a "
                    f"step may take only {model.step_limit_s:g} s: set model.step_limit_s "
                    f"(DESKBUS_MODEL_STEP_LIMIT_S) to at least {needed_s:g}"
                )
        return self

    @model_validator(mode="after")
    def _stages_have_providers(self) -> Self:
        names = provider_names(self.providers, demo=self.demo)
        for name, endpoint in self.providers.items():
            for problem in endpoint.stage_problems(name, names):
                raise ValueError(problem)
        return self

    def limits_of(self, account: str) -> AccountLimits:
        """The limits in force for one account."""
        merged = LimitSettings.model_validate(
            {**self.limits.model_dump(), **self._of(account).limits}
        )
        return AccountLimits.model_validate(merged.model_dump())

    def currency_of(self, account: str) -> str:
        """The currency that an account is opened in."""
        return self._of(account).currency

    def benchmark_of(self, account: str) -> str:
        """The benchmark of an account."""
        return self._of(account).benchmark

    def _of(self, account: str) -> sections.AccountSettings:
        return self.accounts.get(account, sections.AccountSettings())

    def rate_of(self, provider: str) -> Rate:
        """The rate limit of a model endpoint: as it is set, else as for its preset."""
        endpoint = self.providers.get(provider) or EndpointSettings()
        return endpoint.rate or RATES.get(endpoint.preset or provider, NO_RATE)

    def changed(self, **changes: Any) -> Self:
        """These settings with others in their place, unchecked; of a table by a dict of those that
        change: `changed(http={"port": 0})`."""
        tables = {name: getattr(self, name) for name in changes}
        return self.model_copy(
            update={
                name: tables[name].model_copy(update=new)
                if isinstance(tables[name], BaseModel) and isinstance(new, dict)
                else new
                for name, new in changes.items()
            }
        )

    def value_of(self, name: str) -> Any:
        """The value of a setting by its name, as `http.port`."""
        table, _, field = name.rpartition(".")
        return getattr(getattr(self, table) if table else self, field)

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
        if self.nats.url is None:
            raise NoServers("DESKBUS_NATS_URL is not set, and no embedded server was started")
        return self.nats.url

    @property
    def postgres_address(self) -> str:
        """The Postgres DSN, maybe with a password in it: for connecting, never for showing."""
        if self.postgres.dsn is None:
            raise NoServers("DESKBUS_POSTGRES_DSN is not set, and no embedded server was started")
        return self.postgres.dsn.get_secret_value()

    @property
    def postgres_public(self) -> str:
        """The Postgres DSN without user and password: for showing."""
        parts = urlsplit(self.postgres_address)
        return dsn_of(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings that differ from the defaults, as the environment of another process."""
        values = {
            name: self.value_of(name)
            for name, field in all_settings()
            if self.value_of(name) != field.get_default(call_default_factory=True)
        }
        return {variable(name): _as_text(value) for name, value in values.items()} | {
            variable("postgres.dsn"): self.postgres_address
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
        in_file = settings_in_file()
        for name in in_file.keys() - Settings.model_fields.keys():
            table = nearest(name, SECTIONS) if isinstance(in_file[name], Mapping) else None
            meant = _meant(name) if table is None else did_you_mean(f"the table [{table}]")
            raise WrongSetting(f"{name} in {SETTINGS_FILE} is not a setting{meant}")
        for name in in_file.keys() & SECTIONS.keys():
            if not isinstance(in_file[name], Mapping):
                fields = ", ".join(SECTIONS[name].model_fields)
                raise WrongSetting(f"{name} in {SETTINGS_FILE} is a table [{name}] of {fields}")
        environment = EnvSettingsSource(settings_cls)
        environment.env_vars = {
            name: value for name, value in environment.env_vars.items() if is_setting(name)
        }
        return init_settings, environment, InitSettingsSource(settings_cls, in_file)


def settings_in_force() -> Settings:
    """The settings of this process. Raises WrongSetting and UnreadableFile, whose text says
    which."""
    try:
        return Settings()
    except ValidationError as error:
        raise WrongSetting(f"invalid setting: {describe(error, Settings)}") from error
    except (RecursionError, SettingsError) as error:
        # A parser gives up on what is nested too deep with the one or the other, by its version.
        field = next((name for name in Settings.model_fields if f'"{name}"' in str(error)), "...")
        raise WrongSetting(
            f"{variable(field)} in the environment is not JSON, or is nested too deep"
        ) from error


SECTIONS: Mapping[str, type[sections.Section]] = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, sections.Section)
}
"""The tables whose settings have a name of their own each, as `http.port`."""


def all_settings() -> Iterator[tuple[str, FieldInfo]]:
    """Each setting by its name, as `http.port`, in the order of their definition."""
    for name, field in Settings.model_fields.items():
        if name in SECTIONS:
            fields = SECTIONS[name].model_fields
            yield from ((f"{name}.{inner}", own) for inner, own in fields.items())
        else:
            yield name, field


def variable(name: str) -> str:
    """The variable of a setting: DESKBUS_HTTP_PORT of `http.port`."""
    return f"{PREFIX}{name.upper().replace('.', '_')}"


def is_in(tables: Mapping[str, Any], name: str) -> bool:
    """Whether a settings file has the setting."""
    table, _, field = name.rpartition(".")
    inner = tables.get(table) if table else tables
    return isinstance(inner, Mapping) and field in inner


def overridden_by(path: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The variable that sets what stands in the file at a path, as `("limits", "order_pct_max")`:
    its own, or one of a table around it, as JSON; None where no variable does."""
    given = {name.upper(): text for name, text in environment.items()}
    # A table's variables are split once: DESKBUS_ACCOUNTS_MAIN is the last that can be written.
    for depth in (1, 2):
        name = variable(".".join(path[:depth]))
        if name in given and _has(given[name], path[depth:]):
            return name
    return None


def _has(text: str, path: Sequence[str]) -> bool:
    if not path:
        return True
    try:
        inner = TypeAdapter(Any).validate_json(text)
    except ValidationError:
        return False
    for name in path:
        if not isinstance(inner, Mapping) or name not in inner:
            return False
        inner = inner[name]
    return True


def is_setting(name: str) -> bool:
    """Whether a variable, in lower case, is one of a setting; raises WrongSetting where it only
    looks like one. Channels' addresses and keys of endpoints may begin in the same way."""
    own = name.upper().removeprefix(PREFIX)
    if own == name.upper() or own in NO_SETTINGS:
        return False
    names = dict(all_settings())
    known = {variable(name) for name in names}
    if own.startswith("NOTIFY_"):
        return own.removeprefix("NOTIFY_").lower() in Notify.model_fields
    if PREFIX + own in known:
        return True
    if own.endswith("_KEY"):
        return False
    tables = tuple(f"{variable(name)}_" for name, field in names.items() if _is_table(field))
    if (PREFIX + own).startswith(tables):
        return True
    if own.lower() in Settings.model_fields:
        within = [variable(it) for it in names if it.startswith(f"{own.lower()}.")]
        raise WrongSetting(f"{PREFIX}{own} names a table: set {', '.join(within)}")
    raise WrongSetting(f"{PREFIX}{own} is not a setting{_meant(own.lower())}")


def _is_table(field: FieldInfo) -> bool:
    kinds = (field.annotation, *get_args(field.annotation))
    return any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds)


def _meant(wrong: str) -> str:
    """The question whether a setting was meant that is called so, or ends so."""
    names = {name.replace(".", "_"): name for name, _ in all_settings()}
    ends = (name for flat, name in names.items() if flat.endswith(f"_{wrong}"))
    # A table that was meant stands for its first setting.
    near_ones = names | {name.partition(".")[0]: name for name in reversed(names.values())}
    near = next(ends, None) or near_ones.get(nearest(wrong, near_ones) or "")
    return did_you_mean(None if near is None else f"{near} ({variable(near)})")


def _as_text(value: Any) -> str:
    """A value as the environment has it: tables and lists as JSON."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return value.model_dump_json(exclude_defaults=True)
    if isinstance(value, dict | tuple):
        return TypeAdapter(Any).dump_json(value, exclude_defaults=True).decode()
    return str(value)
