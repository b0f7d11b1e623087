"""Trying an endpoint by real calls: servers that can do all, and one for each thing missing."""

import asyncio
import json
import os
import signal
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from libs.llm.endpoints import trial
from libs.llm.endpoints.endpoint import PRESETS, PRICES, Capabilities, ModelEndpoint, OutputMode
from libs.llm.endpoints.trial import Trial
from libs.runtime.settings import Settings
from services.cli.operating import model_call
from services.cli.operating.checks import CheckVerdict
from tests.fakes.model_server import (
    HOST,
    KEY,
    Answer,
    Asked,
    Body,
    Error,
    Hang,
    ModelServer,
    model_server,
)
from tests.fakes.wire_formats import Call, Says

MODEL = "small-model"
NUMBERS = " ".join(map(str, range(1, 41)))
BOTH = (Call("get_price", {"ticker": "AAA"}), Call("get_price", {"ticker": "BBB"}))
VALID = Says('{"word": "yes", "number": 7}')


def able(asked: Asked) -> Answer:
    """A server that can do everything."""
    if asked.tools:
        return Says(calls=BOTH)
    text = json.dumps(asked.body["messages"])
    if "JSON Schema" in text or "output_config" in asked.body:
        return VALID
    return Says(NUMBERS if "1 to 40" in text else "OK")


def endpoint_at(url: str, **changes: Any) -> ModelEndpoint:
    can = Capabilities(output=OutputMode.JSON_SCHEMA)
    models = dict.fromkeys(("small", "medium", "large"), MODEL)
    return replace(ModelEndpoint("lab", "openai", url, can, models), timeout_s=10, **changes)


async def tried(
    server: ModelServer, prices: Mapping[str, Any] | None = None, **changes: Any
) -> Trial:
    async with model_server(server):
        endpoint = endpoint_at(server.openai_url, **changes)
        return await trial.tried(endpoint, SecretStr(KEY), prices or {})


async def test_a_server_that_can_do_all_is_seen_to() -> None:
    found = await tried(ModelServer(able, listed=(MODEL,)))
    assert found.error is None
    assert (found.tools, found.parallel, found.output) == ("native", True, OutputMode.JSON_SCHEMA)
    assert (found.streams, found.reports_usage, found.refused) == (True, True, [])
    assert found.listed == (MODEL,)
    assert found.prompt_speed
    assert found.output_speed
    assert found.used.cost_usd is None


async def test_claude_is_tried_in_its_own_format() -> None:
    async with model_server(able) as server:
        own = replace(PRESETS["claude"], base_url=server.url)
        found = await trial.tried(own, SecretStr(KEY), PRICES)
    assert (found.error, found.tools, found.output) == (None, "native", OutputMode.JSON_SCHEMA)
    assert found.used.cost_usd is not None
    assert 0 < found.used.cost_usd <= trial.COST_USD_MAX


def lacks(**answers: Answer) -> Any:
    """A server that answers these kinds of calls otherwise."""

    def script(asked: Asked) -> Answer:
        form = asked.body.get("response_format", {}).get("type", "")
        kind = "tools" if asked.tools else form
        if kind in answers:
            return answers[kind]
        return able(asked)

    return script


async def test_a_call_written_as_text_and_a_single_one_are_told_apart() -> None:
    text = json.dumps({"name": "get_price", "arguments": {"ticker": "AAA"}})
    found = await tried(ModelServer(lacks(tools=Says(text))))
    assert (found.tools, found.parallel) == ("text", False)
    found = await tried(ModelServer(lacks(tools=Says(calls=BOTH[:1]))))
    assert (found.tools, found.parallel) == ("native", False)


async def test_a_model_that_calls_no_tool_and_a_server_that_takes_none_say_why() -> None:
    found = await tried(ModelServer(lacks(tools=Says("I cannot look up prices."))))
    assert (found.tools, "in words" in found.tools_error) == ("none", True)
    words = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    found = await tried(ModelServer(lacks(tools=Error(400, "BadRequestError", words))))
    assert found.tools_error.startswith("start vLLM with --enable-auto-tool-choice")
    assert found.output is OutputMode.JSON_SCHEMA


@pytest.mark.parametrize(
    ("refused", "output"),
    [
        (("json_schema",), OutputMode.JSON_OBJECT),
        (("json_schema", "json_object"), OutputMode.NONE),
    ],
)
async def test_the_strictest_mode_that_brings_a_valid_answer_counts(
    refused: tuple[str, ...], output: OutputMode
) -> None:
    no = Error(400, "invalid_request_error", "response_format is not supported")
    found = await tried(ModelServer(lacks(**dict.fromkeys(refused, no))))
    assert (found.output, tuple(found.refused)) == (output, refused)


async def test_a_server_that_does_not_stream_or_refuses_to_is_seen() -> None:
    found = await tried(ModelServer(able, streams=False))
    assert (found.error, found.streams) == (None, False)

    def refuses(asked: Asked) -> Answer:
        no = Error(400, "invalid_request_error", "streaming is switched off")
        return no if asked.body.get("stream") else able(asked)

    found = await tried(ModelServer(refuses))
    assert (found.error, found.streams, found.capabilities.stream) == (None, False, False)


async def test_fields_that_are_refused_are_left_out_and_the_other_output_limit_is_found() -> None:
    def picky(asked: Asked) -> Answer:
        if "stream_options" in asked.body:
            return Error(400, "invalid_request_error", "stream_options: unknown field")
        if "max_tokens" in asked.body:
            words = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            return Error(400, "invalid_request_error", words)
        return able(asked)

    found = await tried(ModelServer(picky))
    assert (found.error, found.tools) == (None, "native")
    assert found.capabilities.max_tokens_field == "max_completion_tokens"


async def test_counts_that_are_missing_and_thoughts_are_told() -> None:
    def thinks(asked: Asked) -> Answer:
        said = able(asked)
        assert isinstance(said, Says)
        return replace(said, no_usage=True, extra={"reasoning_content": "I think."})

    found = await tried(ModelServer(thinks))
    assert (found.reports_usage, found.shows_thoughts) == (False, True)


async def test_no_trial_passes_a_cent_or_its_tokens() -> None:
    dear = {MODEL: PRICES["claude-opus-5-5"]}
    found = await tried(ModelServer(able), dear)
    assert found.tools == "native"
    assert found.used.cost_usd is not None
    assert found.used.cost_usd <= Decimal("0.01")

    def long_winded(asked: Asked) -> Answer:
        usage = {"prompt_tokens": 50, "completion_tokens": 2_000, "total_tokens": 2_050}
        return Says("x " * 4_000, usage=usage)

    server = ModelServer(long_winded)
    found = await tried(server, {MODEL: PRICES["gpt-6-sol"].model_copy(update={"output": 1_000})})
    assert len(server.asked) <= 1
    found = await tried(ModelServer(long_winded))
    assert found.used.tokens <= trial.TOKENS_MAX


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (Error(401, "auth", "no such key"), "check the key"),
        (Error(404, "NotFoundError", "The model `x` does not exist."), "name another model"),
        (Error(404, "", "Not Found"), "check base_url (most end in /v1)"),
        (Error(402, "", "Payment Required"), "add credit"),
        (Error(500, "server_error", "tools param requires --jinja flag"), "start llama-server"),
        (Error(400, "", "x does not support tools"), "name a model that can call tools"),
        (Body(b"<html>login</html>", content_type="text/html"), "check base_url"),
        (Body(b"nothing", status=404, content_type="text/html"), "check base_url"),
    ],
)
async def test_the_advice_stands_first(answer: Answer, advice: str) -> None:
    found = await tried(ModelServer(lambda _: answer, listed=("other-model",)))
    assert found.error is not None
    assert found.error.message.startswith(advice)
    assert KEY not in found.error.message
    assert found.listed == ("other-model",)


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("http://127.0.0.1:9/v1", "start the model's server"),
        ("https://127.0.0.1:{plain}/v1", "write http:// in base_url"),
        ("http://no-such-host.invalid/v1", "correct the host in base_url"),
    ],
)
async def test_a_server_that_cannot_be_reached_says_what_to_do_first(url: str, advice: str) -> None:
    async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(no_tls, HOST, 0) as server:
        plain = server.sockets[0].getsockname()[1]
        found = await trial.tried(endpoint_at(url.format(plain=plain)), None, {})
    assert found.error is not None
    assert found.error.message.startswith(advice), found.error.message


async def test_the_settings_that_follow_are_toml_that_the_desk_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAB_API_KEY", KEY)
    no = Error(400, "invalid_request_error", "response_format is not supported")
    server = ModelServer(lacks(json_schema=no), streams=False)
    async with model_server(server):
        head = (
            f'[providers.lab]\nbase_url = "{server.openai_url}"\noutput = "json_schema"\n'
            f'models = {{ small = "{MODEL}", medium = "{MODEL}", large = "{MODEL}" }}\n'
        )
        (tmp_path / "deskbus.toml").write_text(head)
        checks = await model_call.called(Settings(), "lab")
    found = {check.name: check for check in checks}
    assert {check.verdict for check in checks} == {CheckVerdict.OK}
    assert found["answer form"].said == "json_object; not json_schema"
    assert found["streaming"].said == "replies come whole"
    assert KEY not in "".join(check.said for check in checks)
    pasted = tomllib.loads(found["settings"].said)
    now = pasted["providers"]["lab"]
    assert (now["output"], now["stream"]) == ("json_object", False)
    assert now["models"] == dict.fromkeys(("small", "medium", "large"), MODEL)
    (tmp_path / "deskbus.toml").write_text(found["settings"].said)
    assert Settings().providers["lab"].base_url == server.openai_url


def test_time_limits_follow_from_the_speed_with_slack() -> None:
    endpoint = endpoint_at("http://x/v1")
    slow = Trial(MODEL, endpoint.capabilities, prompt_speed=60.0, output_speed=10.0)
    limits = model_call.limits(slow, endpoint)
    assert limits is not None
    assert limits.call_s >= 2 * (12_000 / 60 + 3_000 / 10)
    assert limits.step_s >= limits.call_s
    assert limits.cycle_s > limits.step_s
    assert model_call.limits(Trial(MODEL, endpoint.capabilities), endpoint) is None


async def test_a_trial_of_a_server_that_hangs_can_be_interrupted(tmp_path: Path) -> None:
    asked = asyncio.Event()

    def hangs(_: Asked) -> Answer:
        asked.set()
        return Hang()

    async with model_server(hangs) as server:
        models = f'models = {{ small = "{MODEL}", medium = "{MODEL}", large = "{MODEL}" }}'
        section = f'[providers.lab]\nbase_url = "{server.openai_url}"\n{models}\n'
        (tmp_path / "deskbus.toml").write_text(section)
        command = (sys.executable, "-m", "services.cli", "doctor", "--call", "lab")
        root = str(Path(__file__).parents[3])
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=tmp_path,
            env={**os.environ, "LAB_API_KEY": KEY, "PYTHONPATH": root},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        await asked.wait()
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert process.returncode != 0
    assert b"Traceback" not in out + err
    assert KEY.encode() not in out + err
