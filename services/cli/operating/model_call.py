"""`deskbus doctor --call NAME`: what a model endpoint can do, and the settings that follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import orjson
from pydantic import JsonValue

from libs.facts import amounts
from libs.llm.endpoints.endpoint import ModelEndpoint, endpoints_of, prices_of
from libs.llm.endpoints.keys import key_of
from libs.llm.endpoints.trial import COST_USD_MAX, TOKENS_MAX, Trial, tried
from libs.llm.registry import NotUsable, all_providers
from libs.runtime.errors import few
from libs.runtime.model_settings import MODEL_TIMEOUT_S_MAX, EndpointSettings
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.settings import Settings
from services.cli.operating.checks import CheckVerdict, DoctorCheck, off, ok, problem
from services.cli.shell.problem import CliProblem, WrongUsage

CALL_TOKENS = (12_000, 3_000)
"""Sent and written in the longest call of a decision on ten tickers: a report of the analyst."""
STEP_TOKENS = (45_000, 6_000)
"""Of the longest step: the analyst's, with its rounds of tools."""
CYCLE_TOKENS = (140_000, 8_000)
"""Of one pipeline's whole decision. Measured on five tickers, and doubled."""
SLACK = 2
"""A limit is this many times what the measured speed needs."""
CYCLE_TIMEOUT_S = 600
MODELS_SHOWN_MAX = 20
SETTINGS = "settings"
"""The check whose finding is TOML."""


@dataclass(frozen=True)
class TimeLimits:
    """Time limits that follow from a speed, in seconds."""

    call_s: int
    step_s: int
    cycle_s: int


async def called(settings: Settings, name: str) -> Sequence[DoctorCheck]:
    """Findings about the provider, and as the last one the settings that follow as TOML. Raises
    CliProblem for a name that has no endpoint, or cannot be called."""
    endpoint = _endpoint(settings, name)
    key = key_of(endpoint, settings.secrets_path)
    trial = await tried(endpoint, key, prices_of(settings))
    if trial.error is not None:
        return [_failed(endpoint, trial, trial.error.message), _spent(trial)]
    return [
        ok("answers", f"{trial.model} at {endpoint.base_url} in {amounts.duration(trial.seconds)}"),
        *_listed(trial),
        _tools(trial),
        _output(trial),
        *_details(trial),
        _speed(trial),
        _spent(trial),
        DoctorCheck(name=SETTINGS, verdict=CheckVerdict.OK, said=_toml(endpoint, trial, settings)),
    ]


def _endpoint(settings: Settings, name: str) -> ModelEndpoint:
    endpoint = endpoints_of(settings).get(name)
    if endpoint is None:
        providers = all_providers(settings)
        if name in providers:
            why = f"{name} computes its answers and calls no endpoint: nothing to test"
        else:
            why = f"no provider {name!r}{did_you_mean(nearest(name, endpoints_of(settings)))}"
        known = ", ".join(endpoints_of(settings))
        raise WrongUsage(why, f"name one of {known}")
    provider = all_providers(settings)[name]
    if isinstance(provider, NotUsable):
        raise CliProblem(provider.why)
    if endpoint.command is not None:
        raise WrongUsage(
            f"{name} is a program; --call cannot measure it",
            "`deskbus doctor` tests its sandbox; then request a decision from it",
        )
    return endpoint


def _failed(endpoint: ModelEndpoint, trial: Trial, why: str) -> DoctorCheck:
    todo = ""
    if trial.listed and trial.model not in trial.listed:
        there = few(trial.listed, most=MODELS_SHOWN_MAX)
        todo = f"it has {there}: set one as models in [providers.{endpoint.name}]"
    return problem("answers", why, todo)


def _listed(trial: Trial) -> Sequence[DoctorCheck]:
    if not trial.listed or trial.model in trial.listed:
        return []
    return [
        ok(
            "models",
            f"accepts any model name; its models are {few(trial.listed, most=MODELS_SHOWN_MAX)}",
        )
    ]


def _tools(trial: Trial) -> DoctorCheck:
    match trial.tools:
        case "native":
            return ok("tools", f"called; {_parallel(trial)}")
        case "text":
            return ok("tools", f"called as text, which the desk reads; {_parallel(trial)}")
        case "none":
            return problem("tools", trial.tools_error, "the planner, analyst and trader call tools")
        case _:
            return _unknown("tools", trial.tools_error)


def _parallel(trial: Trial) -> str:
    return "two per turn" if trial.parallel else "one per turn, although two were requested"


def _output(trial: Trial) -> DoctorCheck:
    refused = f"; not {' or '.join(trial.refused)}" if trial.refused else ""
    if trial.output is not None:
        return ok("answer form", f"{trial.output}{refused}")
    if not trial.refused:
        return _unknown("answer form")
    return problem("answer form", f"no valid JSON{refused}", "try a larger model")


def _details(trial: Trial) -> Sequence[DoctorCheck]:
    usage = "token counts are reported" if trial.reports_usage else "no usable token counts"
    thoughts = "separate from the answer" if trial.shows_thoughts else "none seen"
    return [
        ok("streaming", "replies are streamed" if trial.streams else "replies come whole"),
        ok("usage", usage if trial.reports_usage else f"{usage}: estimated from the bytes"),
        ok("thoughts", thoughts),
    ]


def _speed(trial: Trial) -> DoctorCheck:
    if trial.output_speed is None or trial.prompt_speed is None:
        return _unknown("speed")
    about = "" if trial.reports_usage else "about "
    return ok(
        "speed",
        f"{about}{amounts.speed(trial.prompt_speed)} of a prompt, "
        f"{amounts.speed(trial.output_speed)} of a reply",
    )


def _spent(trial: Trial) -> DoctorCheck:
    most = f"at most {COST_USD_MAX} USD and {TOKENS_MAX:,} tokens"
    return ok("cost", f"{amounts.cost(trial.used.tokens, trial.used.cost_usd)}, {most}")


def _unknown(name: str, why: str = "") -> DoctorCheck:
    reason = why or "another call could exceed the trial's budget"
    return off(name, f"not known: {reason}")


# --- the settings that follow -------------------------------------------------------------------


def limits(trial: Trial, endpoint: ModelEndpoint) -> TimeLimits | None:
    """The time limits that the measured speed needs; None where it is not known."""
    if not trial.output_speed or not trial.prompt_speed:
        return None

    def needed_s(tokens: tuple[int, int]) -> int:
        sent, written = tokens
        seconds = sent / trial.prompt_speed + written / trial.output_speed  # type: ignore[operator]
        return ceil(SLACK * seconds / 60) * 60

    call_s = needed_s(CALL_TOKENS)
    # A step must be no shorter than two timeouts plus one full call.
    hang_s = min(endpoint.silence_s, call_s) if endpoint.tells_while_it_works else call_s
    step_s = max(needed_s(STEP_TOKENS), call_s + 2 * ceil(hang_s))
    return TimeLimits(call_s, step_s, needed_s(CYCLE_TOKENS))


def _toml(endpoint: ModelEndpoint, trial: Trial, settings: Settings) -> str:
    """The settings that differ from those in force, to paste into deskbus.toml."""
    before, now = endpoint.capabilities, trial.capabilities
    own: dict[str, JsonValue] = {}
    if trial.output is not None and trial.output is not before.output:
        own["output"] = trial.output.value
    if now.max_tokens_field != before.max_tokens_field:
        own["max_tokens_field"] = now.max_tokens_field
    if before.stream and not trial.streams:
        own["stream"] = False
    desk: list[str] = []
    comments: list[str] = []
    needed = limits(trial, endpoint)
    if needed is not None:
        if needed.call_s > MODEL_TIMEOUT_S_MAX:
            comments.append("# too slow for the desk: a call would take over 4 hours")
        elif needed.call_s > endpoint.timeout_s:
            own["timeout_s"] = needed.call_s
        if needed.step_s > settings.model.step_limit_s:
            desk.append(f"[model]\nstep_limit_s = {needed.step_s}")
        if needed.cycle_s > CYCLE_TIMEOUT_S:
            comments.append(f"# and for each cycle: --timeout-s {needed.cycle_s}")
    if trial.used.cost_usd is None:
        comments += [
            "# without a price the cost is unknown, and only token budgets limit it:",
            f"# [prices.{_value(trial.model)}]   # US dollars per million tokens",
            "# input = ...",
            "# output = ...",
        ]
    if own:
        before_it = settings.providers.get(endpoint.name) or EndpointSettings()
        section = {**before_it.model_dump(mode="json", exclude_unset=True), **own}
        desk.append(f"[providers.{endpoint.name}]   # replaces the existing table")
        desk += [f"{name} = {_value(value)}" for name, value in section.items()]
    return "\n".join([*desk, *comments]) or "# the current settings fit"


def _value(value: JsonValue) -> str:
    """A value as TOML writes it; its strings, numbers and lists are those of JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {_value(part)}' for name, part in value.items())} }}"
    return orjson.dumps(value).decode()
