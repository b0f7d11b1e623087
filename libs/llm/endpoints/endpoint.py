"""Endpoints: where models are, what each can do, what they cost. No vendor is imported here."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from libs.llm.provider import OUTPUT_TOKENS_MAX, ModelReply, ModelRequest, ModelSize
from libs.runtime.contained import Containment
from libs.runtime.model_settings import (
    COMPATIBLE,
    MODEL_SILENCE_S,
    MODEL_TIMEOUT_S,
    EndpointSettings,
    Price,
)
from libs.runtime.settings import SETTINGS_FILE, Settings, all_settings


class OutputMode(StrEnum):
    """How an endpoint can be bound to a JSON answer. What it cannot, the prompt asks for."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    NONE = "none"


@dataclass(frozen=True)
class Capabilities:
    """The abilities of an endpoint; servers refuse or ignore fields they do not know.

    `tool_choice`, `parallel_calls` and `seed`: the request may have that field. `reasoning_echo`:
    a model's thoughts must come back verbatim. `effort`: how much models that reason shall, in the
    endpoint's own words; empty for its default. `effort_with_tools`: the same where there are
    tools; empty for `effort`. `stream`: replies may come in pieces.
    """

    output: OutputMode = OutputMode.NONE
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    tool_choice: bool = False
    parallel_calls: bool = False
    seed: bool = False
    reasoning_echo: bool = False
    effort: str = ""
    effort_with_tools: str = ""
    stream: bool = True

    def effort_for(self, request: ModelRequest) -> str:
        """The effort to ask for; empty for none."""
        return (request.tools and self.effort_with_tools) or self.effort


@dataclass(frozen=True)
class Guarded:
    """The places of the desk that a program must not read, and those that it must not write to."""

    secret: tuple[Path, ...]
    unwritable: tuple[Path, ...]


@dataclass(frozen=True)
class Program:
    """A local program in the place of an endpoint, as the settings of a provider have it."""

    argv: tuple[str, ...]
    output: Literal["text", "json"]
    at_once: int
    containment: Containment
    guarded: Guarded


@dataclass(frozen=True)
class ModelEndpoint:
    """One place where models are, in the wire format of one SDK; or a program (`command`).

    `models` maps a ModelSize or a stage to a model id. `named` is False where the desk only knows
    the preset, and nobody has set anything for it. A `free` endpoint's calls cost nothing; their
    tokens count. `patient`: it reads a long prompt in silence, and is on the desk's own machines:
    `silence_s` does not count.
    """

    name: str
    wire: Literal["claude", "openai", "command"]
    base_url: str
    capabilities: Capabilities = Capabilities()
    models: Mapping[str, str] = field(default_factory=dict)
    key_variable: str = ""
    key_file: str = ""
    key_needed: bool = True
    free: bool = False
    named: bool = False
    output_tokens_max: int = OUTPUT_TOKENS_MAX
    timeout_s: float = MODEL_TIMEOUT_S
    silence_s: float = MODEL_SILENCE_S
    patient: bool = False
    command: Program | None = None

    def model_for(self, stage: str, size: ModelSize) -> str:
        """The model for a stage; empty where none is set."""
        return self.models.get(stage) or self.models.get(size, "")

    @property
    def tells_while_it_works(self) -> bool:
        """True where silence for `silence_s` means that it has died."""
        return self.capabilities.stream and not self.patient and self.silence_s < self.timeout_s

    @property
    def read_timeout_s(self) -> float:
        """The longest wait for the next byte."""
        return self.silence_s if self.tells_while_it_works else self.timeout_s

    def tokens_max(self, request: ModelRequest) -> int:
        """The most tokens that the reply to a request may have."""
        return self.output_tokens_max * request.room


class Wire(Protocol):
    """Speaks one wire format. `usage` of its replies has a cost only where the reply states one."""

    async def send(self, request: ModelRequest) -> ModelReply:
        """One call. Raises ModelErrors only."""
        ...

    async def close(self) -> None:
        """Give the connections back."""
        ...


def _sizes(small: str, medium: str, large: str) -> Mapping[str, str]:
    return MappingProxyType({"small": small, "medium": medium, "large": large})


_LOCAL = Capabilities(output=OutputMode.JSON_SCHEMA, seed=True, parallel_calls=True)

PRESETS: Mapping[str, ModelEndpoint] = MappingProxyType(
    {
        "claude": ModelEndpoint(
            "claude",
            "claude",
            "https://api.anthropic.com",
            Capabilities(output=OutputMode.JSON_SCHEMA, reasoning_echo=True),
            _sizes("claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"),
            key_variable="ANTHROPIC_API_KEY",
        ),
        "openai": ModelEndpoint(
            "openai",
            "openai",
            "https://api.openai.com/v1",
            Capabilities(
                output=OutputMode.JSON_SCHEMA,
                max_tokens_field="max_completion_tokens",
                tool_choice=True,
                parallel_calls=True,
                # Its models of the sixth generation take function tools here with this alone.
                effort_with_tools="none",
            ),
            _sizes("gpt-6-luna", "gpt-6-sol", "gpt-6-sol"),
            key_variable="OPENAI_API_KEY",
        ),
        "minimax": ModelEndpoint(
            "minimax",
            "openai",
            "https://api.minimax.io/v1",
            Capabilities(reasoning_echo=True),
            _sizes("MiniMax-M2.5", "MiniMax-M2.5", "MiniMax-M2.5"),
            key_variable="MINIMAX_API_KEY",
        ),
        "vllm": ModelEndpoint(
            "vllm",
            "openai",
            "http://127.0.0.1:8000/v1",
            _LOCAL,
            key_variable="VLLM_API_KEY",
            key_needed=False,
            free=True,
            patient=True,
        ),
        "ollama": ModelEndpoint(
            "ollama",
            "openai",
            "http://127.0.0.1:11434/v1",
            replace(_LOCAL, parallel_calls=False),
            key_needed=False,
            free=True,
            patient=True,
        ),
        "llamacpp": ModelEndpoint(
            "llamacpp",
            "openai",
            "http://127.0.0.1:8080/v1",
            _LOCAL,
            key_variable="LLAMACPP_API_KEY",
            key_needed=False,
            free=True,
            patient=True,
        ),
        COMPATIBLE: ModelEndpoint(COMPATIBLE, "openai", "", key_needed=False),
    }
)


_COMMAND = ModelEndpoint(
    "command",
    "command",
    "",
    Capabilities(stream=False),
    _sizes("default", "default", "default"),
    key_needed=False,
    patient=True,
)
"""A local program: it has no address, and works in silence."""


def _price(
    input_usd: str,
    output_usd: str,
    cache_read: str,
    cache_write: str,
    long: tuple[int, str, str] | None = None,
) -> Price:
    above, input_factor, output_factor = long or (None, "1", "1")
    return Price(
        input=Decimal(input_usd),
        output=Decimal(output_usd),
        cache_read=Decimal(cache_read),
        cache_write=Decimal(cache_write),
        long_from_tokens=above,
        long_input_factor=Decimal(input_factor),
        long_output_factor=Decimal(output_factor),
    )


_GPT_6_LONG = (272_000, "2", "1.5")

# List prices as published in November 2026, never compared with a bill; `prices` overrides them.
PRICES: Mapping[str, Price] = MappingProxyType(
    {
        "claude-haiku-5-5": _price("0.10", "0.50", "0.01", "0.125", (100_000, "5", "5")),
        "claude-sonnet-5-5": _price("2", "10", "0.10", "2.50"),
        "claude-opus-5-5": _price("4", "20", "0.20", "5"),
        "gpt-6-luna": _price("0.10", "0.50", "0.01", "0.125", _GPT_6_LONG),
        "gpt-6-sol": _price("2", "10", "0.20", "2.50", _GPT_6_LONG),
        "MiniMax-M2.5": _price("0.30", "1.20", "0.03", "0.375"),
    }
)


def prices_of(settings: Settings) -> Mapping[str, Price]:
    """The built-in prices with the settings' over them."""
    return {**PRICES, **settings.prices}


OF_ENDPOINT = {
    "base_url",
    "key_variable",
    "key_file",
    "free",
    "output_tokens_max",
    "timeout_s",
    "silence_s",
}
"""Settings of the endpoint itself; most others are capabilities."""
OF_DESK = {"preset", "models", "stages", "fallback", "rate", "knowledge_cutoff"}
OF_PROGRAM = {"command", "command_output", "command_at_once", "sandbox"}
"""Settings that others read."""


def endpoints_of(settings: Settings) -> Mapping[str, ModelEndpoint]:
    """All endpoints by name: the presets, and what the settings add or change."""
    timed = {
        name: replace(
            preset, timeout_s=settings.model.timeout_s, silence_s=settings.model.silence_s
        )
        for name, preset in {**PRESETS, _COMMAND.name: _COMMAND}.items()
    }
    known = {name: timed[name] for name in PRESETS if name != COMPATIBLE}
    return {
        **known,
        **{
            name: _program(_set(name, provider, timed), provider, settings)
            if provider.command
            else _set(name, provider, timed)
            for name, provider in settings.providers.items()
        },
    }


SECRET_FILES = ("key_file", "token_file")
"""How settings end that name a file with a secret."""


PUBLIC_FILES = ("runtime.json", "servers/nats.conf")
"""In the data directory: addresses, subjects and public keys, which other users may read."""


def guarded(settings: Settings) -> Guarded:
    """The places of the desk with these settings, as far as this process knows them."""
    files = [settings.value_of(name) for name, _ in all_settings() if name.endswith(SECRET_FILES)]
    keys = [Path(one.key_file) for one in settings.providers.values() if one.key_file]
    named = [path for path in (*files, *keys) if path is not None]
    secret = (settings.data_dir, settings.secrets_path, *named, Path(SETTINGS_FILE))
    code = Path(__file__).resolve().parents[3]
    public = [settings.data_dir / name for name in PUBLIC_FILES]
    return Guarded(tuple(dict.fromkeys(secret)), (code, Path.cwd(), *public))


def _program(
    endpoint: ModelEndpoint, provider: EndpointSettings, settings: Settings
) -> ModelEndpoint:
    sandbox = provider.sandbox
    program = Program(
        provider.command,
        provider.command_output,
        provider.command_at_once,
        Containment(sandbox.run_as, sandbox.wrapper, sandbox.path, sandbox.home),
        guarded(settings),
    )
    return replace(endpoint, command=program, key_variable="")


def _set(
    name: str, provider: EndpointSettings, presets: Mapping[str, ModelEndpoint]
) -> ModelEndpoint:
    known = provider.preset or (name if name in presets else COMPATIBLE)
    preset = presets["command" if provider.command else known]
    # A key goes to the endpoint that it was made for: another name reads another variable.
    variable = preset.key_variable if preset.name == name else _variable(name)
    changes = provider.model_dump(exclude_none=True, include=OF_ENDPOINT)
    can = provider.model_dump(exclude_none=True, exclude=OF_DESK | OF_ENDPOINT | OF_PROGRAM)
    if "output" in can:
        can["output"] = OutputMode(can["output"])
    return replace(
        preset,
        **{
            "name": name,
            "key_variable": variable,
            "named": True,
            "models": {**preset.models, **provider.models},
            "capabilities": replace(preset.capabilities, **can),
            # Whoever sets how long an endpoint may be silent means it.
            "patient": preset.patient and provider.silence_s is None,
            **changes,
        },
    )


def _variable(name: str) -> str:
    return f"{name.upper().replace('-', '_')}_API_KEY"
