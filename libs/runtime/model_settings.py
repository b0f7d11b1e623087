"""The settings of a model endpoint and of a model's price. No key ever stands here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from contracts.stages import RULES, WORDS, Stage, with_stages
from contracts.types import Name
from libs.runtime.plain_url import PlainUrl

ENDPOINT_NAME = r"^[a-z][a-z0-9_-]{0,39}$"
"""Pipelines name providers by it."""

OF_ADDRESS = ("preset", "base_url", "key_variable", "key_file", "output", "stream")
"""Settings that a program has no use for."""
EFFORT = r"^[a-z]{0,20}$"
"""Each vendor has its own words, as none, low, high, max."""
MODEL_TIMEOUT_S_MAX = 14_400.0
"""A model on a processor may take hours for a long prompt."""

FACTS_MAX = 240
"""Facts shown in one call: four fields of a contract may name them, and OpenAI takes 1,000 values
in one schema."""

SIZES = ("small", "medium", "large")
STAGES: tuple[str, ...] = tuple(WORDS)
"""The parts of a pipeline that a model plays; each may be given a model of its own."""

Preset = Literal["claude", "openai", "minimax", "vllm", "ollama", "llamacpp", "compatible"]
COMPATIBLE = "compatible"
"""The preset of an endpoint that is none of the others; no provider is named so by itself."""
Output = Literal["json_schema", "json_object", "none"]
MODEL_TIMEOUT_S = 300.0
MODEL_SILENCE_S = 120.0
UsdPerMillion = Annotated[Decimal, Field(ge=0, le=10_000)]


Argument = Annotated[str, StringConstraints(max_length=4_000, pattern=r"^[^\x00]*$")]
Argv = Annotated[tuple[Argument, ...], Field(max_length=64)]


def _known_stages(models: dict[str, str]) -> dict[str, str]:
    unknown = sorted(set(models) - {*SIZES, *STAGES})
    if unknown:
        raise ValueError(f"{', '.join(unknown)} is neither {', '.join(SIZES)} nor a stage")
    for size in SIZES:
        if models.get(size) == RULES:
            raise ValueError(
                f"{size}: rules is not a model; give it stages: stages.planner = 'rules'"
            )
    return models


class Rate(BaseModel):
    """How fast an endpoint may be asked, by all replicas of all services together; None: no limit.

    `tokens_per_minute_max` counts input and output.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls_per_minute_max: int | None = Field(default=None, ge=2, le=1_000_000)
    tokens_per_minute_max: int | None = Field(default=None, ge=1_000, le=1_000_000_000)

    def __str__(self) -> str:
        limits = ((self.calls_per_minute_max, "calls"), (self.tokens_per_minute_max, "tokens"))
        words = [f"{most:,} {what}" for most, what in limits if most is not None]
        return f"at most {' and '.join(words)} a minute" if words else "no rate limit"


SCRIPTED = "scripted"
"""The provider of a demo's desk, and of no other."""
PROPOSAL = "proposal"
"""The provider of a proposer's cycles, which nobody else may name."""
BUILT_IN = ("rules", "coin", SCRIPTED, PROPOSAL)
"""Providers that the desk comes with. They compute, so no endpoint may pass for one: it would be
shown what a masked arm must not see."""


def provider_names(endpoints: Iterable[str], *, demo: bool) -> tuple[str, ...]:
    """The providers that pipelines may name on a desk with these endpoints, each once: those built
    in, the presets, and the endpoints."""
    built_in = (name for name in BUILT_IN if name != PROPOSAL and (demo or name != SCRIPTED))
    presets = (name for name in get_args(Preset) if name != COMPATIBLE)
    return tuple(dict.fromkeys((*built_in, *presets, *endpoints)))


def not_built_in(name: str) -> str:
    """The name of an endpoint. Raises ValueError for one that the desk itself has given."""
    if name in BUILT_IN:
        raise ValueError(f"{name} is built in: give the endpoint another name")
    return name


EndpointName = Annotated[
    str, StringConstraints(pattern=ENDPOINT_NAME), AfterValidator(not_built_in)
]
NO_RATE = Rate()
RATES: Mapping[str, Rate] = MappingProxyType(
    {"claude": Rate(calls_per_minute_max=50), "openai": Rate(calls_per_minute_max=500)}
)
"""What the lowest paid tiers allow, as published; whoever has more sets more."""


class Sandbox(BaseModel):
    """How the program of a provider is kept away from the desk.

    `run_as` is the user that it becomes (a name or a uid; the desk must run as root), `wrapper` a
    command that it is started through, as bubblewrap or a container; `path` and `home` are its PATH
    and HOME. `only_vendor` states that from there it reaches its vendor and nothing else: the desk
    cannot prove that. Then studies and past dates may ask it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_as: str = Field(default="", pattern=r"^[a-z0-9_][a-z0-9_.-]{0,31}$|^$")
    wrapper: Argv = ()
    path: str = Field(default="/usr/local/bin:/usr/bin:/bin", pattern=r"^/[^\x00]{0,999}$")
    home: str = Field(default="", pattern=r"^(/[^\x00]{0,999})?$")
    only_vendor: bool = False


class EndpointSettings(BaseModel):
    """The differences from the preset; None leaves the preset's value.

    `models` maps small, medium, large or a stage (sentiment, planner, quant, research, trader,
    risk, memory, design, assessor) to a model id of this endpoint. `stages` gives a stage to
    another provider of the desk, and `fallback` names the provider that is asked once after a stage
    has failed; none unless it is set. `models.STAGE = "rules"` is read as `stages.STAGE`. A key
    comes from the environment variable `key_variable` or, where that is not set, from the file
    `key_file`. `rate` is read by the orchestrator. `timeout_s` and `silence_s` stand for
    model.timeout_s and model.silence_s of the desk. `knowledge_cutoff` is the day at which what its
    models were trained on ends, as their maker says: studies compare what was decided before and
    after it. `command` makes it a program of this machine, which gets a prompt on standard input
    and prints an answer: as `text`, or as `json` with `result` and `total_cost_usd`
    (`command_output`); `command_at_once` may run in one process of the desk.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: Preset | None = None
    base_url: PlainUrl | None = None
    models: Annotated[dict[str, str], AfterValidator(_known_stages)] = Field(default_factory=dict)
    stages: dict[Stage, Name] = Field(default_factory=dict)
    fallback: dict[Stage, Name] = Field(default_factory=dict)
    key_variable: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    key_file: str | None = None
    output: Output | None = None
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    tool_choice: bool | None = None
    parallel_calls: bool | None = None
    reasoning_echo: bool | None = None
    effort: str | None = Field(default=None, pattern=EFFORT)
    effort_with_tools: str | None = Field(default=None, pattern=EFFORT)
    stream: bool | None = None
    output_tokens_max: int | None = Field(default=None, ge=256, le=1_000_000)
    timeout_s: float | None = Field(default=None, gt=0, le=MODEL_TIMEOUT_S_MAX)
    silence_s: float | None = Field(default=None, gt=0, le=MODEL_TIMEOUT_S_MAX)
    free: bool | None = None
    rate: Rate | None = None
    knowledge_cutoff: date | None = None
    command: Argv = ()
    command_output: Literal["text", "json"] = "text"
    command_at_once: int = Field(default=1, ge=1, le=16)
    sandbox: Sandbox = Sandbox()

    @model_validator(mode="after")
    def _program_or_address(self) -> Self:
        """A program has no address, and what is about a program is about one."""
        if self.command:
            has = [name for name in OF_ADDRESS if getattr(self, name) is not None]
            if has:
                raise ValueError(f"a command has no {has[0]}: remove one of the two")
        elif self.sandbox != Sandbox() or self.command_output != "text":
            raise ValueError("sandbox and command_output are for a program: set command")
        return self

    @model_validator(mode="before")
    @classmethod
    def _rules_are_no_model(cls, fields: Any) -> Any:
        return with_stages(fields)

    def stage_problems(self, name: str, providers: Sequence[str]) -> Iterator[str]:
        """Each contradiction in the stages of endpoint `name` on a desk with these providers."""
        for table, chosen in (("stages", self.stages), ("fallback", self.fallback)):
            for stage, provider in chosen.items():
                place = f"providers.{name}.{table}.{stage}"
                if provider not in providers:
                    yield (
                        f"{place}: no provider is named {provider}; this desk has "
                        f"{', '.join(providers)}"
                    )
        for stage, provider in self.stages.items():
            if provider == name:
                yield (
                    f"providers.{name}.stages.{stage}: {name} already answers its own stages; "
                    "remove this line"
                )
            if stage in self.models:
                yield (
                    f"providers.{name}: {stage} has a model in `models` and is given to "
                    f"{provider} in `stages`; remove one of them"
                )
        for stage, provider in self.fallback.items():
            if provider == self.stages.get(stage, name):
                yield (
                    f"providers.{name}.fallback.{stage}: {provider} answers this stage already; "
                    "name another provider"
                )
        for key, model in self.models.items():
            if key in STAGES and model in providers and model != name:
                yield (
                    f"providers.{name}.models.{key}: {model} is a provider of this desk; to give "
                    f'it the stage, write stages.{key} = "{model}"'
                )


class Price(BaseModel):
    """US dollars per million tokens of each sort. Cached input costs as other input where no price
    is set for it.

    A request whose whole input is over `long_from_tokens` costs its input (cached parts too) times
    `long_input_factor` and its output times `long_output_factor`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: UsdPerMillion
    output: UsdPerMillion
    cache_read: UsdPerMillion
    cache_write: UsdPerMillion
    long_from_tokens: int | None = Field(default=None, ge=0)
    long_input_factor: Decimal = Field(default=Decimal(1), ge=1, le=100)
    long_output_factor: Decimal = Field(default=Decimal(1), ge=1, le=100)

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, prices: Any) -> Any:
        """Cached input costs as other input where nothing else is set: never 0."""
        if not isinstance(prices, dict):
            return prices
        if not {"input", "output"} <= prices.keys():
            raise ValueError("set both input and output, in US dollars per million tokens")
        return {"cache_read": prices["input"], "cache_write": prices["input"], **prices}
