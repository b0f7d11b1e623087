"""Endpoints: prices, reservations, keys, and who can be used."""

import asyncio
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError
from structlog.testing import CapturingLogger

from contracts.message import Pipeline
from contracts.types import Usage
from libs.llm.agent import AgentLimits, Role
from libs.llm.endpoints import remote, usage
from libs.llm.endpoints.endpoint import PRESETS, PRICES, OutputMode, endpoints_of
from libs.llm.endpoints.keys import key_of
from libs.llm.endpoints.remote import RemoteProvider, cost_usd
from libs.llm.errors import (
    KeyRefused,
    ProviderFault,
    ProviderNotUsable,
    ProviderUnknown,
    ReplyTooLarge,
)
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelReply, ModelRequest, ModelSize, ToolCall, UserMessage
from libs.llm.registry import NotUsable, all_providers, limits_of
from libs.runtime.model_settings import FACTS_MAX, EndpointSettings, Price, provider_names
from libs.runtime.settings import Settings

KEY = "planted-key-0123456789"


class OneReply:
    """A wire that always gives the same reply, or error."""

    def __init__(self, reply):
        self.reply = reply
        self.closed = 0

    async def send(self, request):
        await asyncio.sleep(0)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    async def close(self):
        self.closed += 1


def provider(reply=None, name="claude", **changes):
    endpoint = replace(PRESETS[name], **changes)
    return RemoteProvider(endpoint, SecretStr(KEY), PRICES, lambda: OneReply(reply))


def request(model="claude-opus-5-5", text="hello", **fields):
    return ModelRequest(
        agent="a",
        model=model,
        system="s",
        system_sha256="0",
        messages=(UserMessage(text=text),),
        **fields,
    )


def test_each_sort_of_token_has_its_price():
    used = Usage(
        input_tokens=1_000_000,
        output_tokens=1_000_000,
        cache_read_tokens=1_000_000,
        cache_write_tokens=1_000_000,
    )
    assert cost_usd(PRICES["claude-opus-5-5"], used) == Decimal("29.2")


@pytest.mark.parametrize(("tokens", "cost"), [(100_000, "0.01"), (100_001, "0.05000050")])
def test_a_long_prompt_costs_more_from_its_first_token(tokens, cost):
    price = PRICES["claude-haiku-5-5"]
    assert cost_usd(price, Usage(cache_read_tokens=tokens - 1, input_tokens=1)) < Decimal(cost)
    assert cost_usd(price, Usage(input_tokens=tokens)) == Decimal(cost)


def test_the_smallest_call_costs_more_than_nothing():
    assert cost_usd(PRICES["claude-haiku-5-5"], Usage(cache_read_tokens=1)) > 0


@pytest.mark.slow
@given(
    text=st.text(max_size=2_000),
    share=st.floats(0, 1),
    output=st.integers(0, 16_000),
    room=st.integers(1, 2),
)
def test_no_call_costs_more_than_was_reserved_for_it(text, share, output, room):
    asked = request(text=text, room=room)
    output *= room
    reserved = provider().reserve(asked)
    tokens = len(text.encode()) // 2
    read = int(tokens * share)
    used = Usage(cache_write_tokens=tokens - read, cache_read_tokens=read, output_tokens=output)
    assert reserved.tokens >= used.tokens
    assert reserved.cost_usd >= cost_usd(PRICES[asked.model], used)


async def test_the_cost_of_a_model_without_a_price_is_unknown_and_its_tokens_count():
    unpriced = provider(ModelReply(text="x", usage=Usage(input_tokens=90)))
    asked = request(model="claude-nobody")
    assert unpriced.reserve(asked).cost_usd is None
    assert unpriced.reserve(asked).tokens > 0
    reply = await unpriced.complete(asked)
    assert (reply.usage.tokens, reply.usage.cost_usd) == (90, None)


def test_cached_input_costs_as_other_input_where_no_price_is_set_for_it():
    price = Price.model_validate({"input": "0.5", "output": 2})
    assert (price.cache_read, price.cache_write) == (price.input, price.input)
    assert Price.model_validate({"input": 1, "output": 2, "cache_read": 0}).cache_read == 0


@pytest.mark.parametrize("given", [{"input": 1}, {"output": 1}, {"cache_read": 1}])
def test_a_price_has_input_and_output(given):
    with pytest.raises(ValidationError, match="set both input and output"):
        Price(**given)


async def test_an_endpoint_of_ones_own_is_free_and_its_tokens_count():
    own = provider(
        ModelReply(text="x", usage=Usage(input_tokens=90)), "vllm", models={"small": "m"}
    )
    assert own.reserve(request(model="m")).cost_usd == 0
    assert own.reserve(request(model="m")).tokens > 0
    reply = await own.complete(request(model="m"))
    assert (reply.usage.tokens, reply.usage.cost_usd) == (90, 0)


async def test_missing_usage_is_estimated_high_and_never_zero(monkeypatch):
    log = CapturingLogger()
    monkeypatch.setattr(remote, "log", log)
    reply = await provider(ModelReply(text="y" * 400)).complete(request(text="x" * 4_000))
    assert reply.usage.input_tokens >= 1_000
    assert reply.usage.output_tokens >= 100
    assert reply.usage.cost_usd > 0
    assert [call.args[0] for call in log.calls] == ["llm.usage_estimated"]
    assert "no token counts" in reply.usage_estimated


@pytest.mark.parametrize(
    "reported",
    [
        Usage(input_tokens=1, output_tokens=1),
        Usage(input_tokens=10**12),
        Usage(input_tokens=10**18, output_tokens=5),
        Usage(input_tokens=1_000, output_tokens=10**6),
        Usage(cache_read_tokens=10**9, input_tokens=1_000),
        Usage(cache_write_tokens=10**4_000),
        Usage(input_tokens=10**30, output_tokens=10**30),
    ],
)
@pytest.mark.parametrize("name", ["claude", "llamacpp"])
async def test_counts_that_cannot_be_true_are_estimated_and_the_reply_says_so(reported, name):
    model = "claude-opus-5-5"
    asked = request(model=model, text="x" * 4_000)
    answering = provider(
        ModelReply(text="y" * 4_000, usage=reported), name, models={"large": model}
    )
    reply = await answering.complete(asked)
    reserved = answering.reserve(asked)
    assert 2_000 <= reply.usage.tokens <= reserved.tokens
    assert reply.usage.cost_usd <= reserved.cost_usd
    assert "estimated" in reply.usage_estimated
    assert "usage_estimated" in reply.model_dump()


@given(
    text=st.text(max_size=500),
    said=st.text(max_size=500),
    counts=st.tuples(*(st.integers(0, 10**20) for _ in range(4))),
)
async def test_no_report_of_an_endpoint_makes_a_call_cost_more_than_about_twice_its_reserve(
    text, said, counts
):
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    reported = Usage(**dict(zip(names, counts, strict=True)))
    asked = request(text=text)
    answering = provider(ModelReply(text=said, usage=reported))
    reply = await answering.complete(asked)
    unseen = Usage(cache_write_tokens=usage.UNSEEN_INPUT_TOKENS)
    most = 2 * answering.reserve(asked).cost_usd + cost_usd(PRICES[asked.model], unseen)
    assert reply.usage.cost_usd <= most


async def test_a_plausible_count_is_believed_and_nothing_is_said():
    counted = Usage(input_tokens=900, output_tokens=800)
    answering = provider(ModelReply(text="y" * 4_000, usage=counted))
    reply = await answering.complete(request(text="x" * 4_000))
    assert (reply.usage.tokens, reply.usage_estimated) == (1_700, "")
    assert "usage_estimated" not in reply.model_dump()


async def test_a_reply_that_echoes_the_key_is_kept_without_it():
    echo = ModelReply(
        text=f"your key is {KEY}",
        tool_calls=(ToolCall(id="c", name=KEY, arguments={KEY: KEY}),),
        raw={"content": KEY},
        usage=Usage(input_tokens=5),
    )
    reply = await provider(echo).complete(request())
    assert KEY not in reply.model_dump_json()
    assert reply.text == "your key is [key]"


async def test_an_error_that_quotes_the_key_is_told_without_it():
    with pytest.raises(KeyRefused) as caught:
        await provider(KeyRefused(f"HTTP 401 (bad key {KEY})")).complete(request())
    assert KEY not in repr(caught.value)
    assert "HTTP 401 (bad key [key])" in caught.value.message


def test_no_repr_shows_the_key():
    assert KEY not in repr(provider()) + repr(vars(provider()))


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (ModelReply(text="x" * 300_000), ReplyTooLarge),
        (ModelReply(raw=2**70), ProviderFault),
    ],
)
async def test_a_reply_that_no_journal_can_keep_fails_and_counts(reply, error):
    with pytest.raises(error) as caught:
        await provider(reply).complete(request())
    assert caught.value.may_have_cost


async def test_the_wire_is_opened_once_and_again_after_closing():
    opened = []

    def open_wire():
        opened.append(OneReply(ModelReply(text="x", usage=Usage(input_tokens=1))))
        return opened[-1]

    found = RemoteProvider(PRESETS["claude"], SecretStr(KEY), PRICES, open_wire)
    await asyncio.gather(*(found.complete(request()) for _ in range(5)))
    assert len(opened) == 1
    await found.close()
    await found.complete(request())
    assert [each.closed for each in opened] == [1, 0]


# --- keys ---------------------------------------------------------------------------------------


def test_a_key_comes_from_its_variable_before_any_file(tmp_path):
    (tmp_path / "claude.key").write_text("key-from-the-file\n")
    found = key_of(PRESETS["claude"], tmp_path, {"ANTHROPIC_API_KEY": "key-from-env"})
    assert found.get_secret_value() == "key-from-env"
    found = key_of(PRESETS["claude"], tmp_path, {"ANTHROPIC_API_KEY": "  "})
    assert found.get_secret_value() == "key-from-the-file"


def test_a_missing_key_names_both_places_where_it_may_be(tmp_path):
    with pytest.raises(ProviderNotUsable, match=r"set ANTHROPIC_API_KEY, .*claude\.key"):
        key_of(PRESETS["claude"], tmp_path, {})


def test_a_preset_without_a_variable_names_the_file_alone(tmp_path):
    endpoint = replace(PRESETS["claude"], key_variable="")
    with pytest.raises(ProviderNotUsable, match=r"before the desk starts, write the key into /"):
        key_of(endpoint, tmp_path, {})


def test_a_key_file_that_is_not_there_is_told(tmp_path):
    endpoint = replace(PRESETS["vllm"], key_file=str(tmp_path / "gone"))
    with pytest.raises(ProviderNotUsable, match="gone is not there"):
        key_of(endpoint, tmp_path, {})


@pytest.mark.parametrize("text", ["two words", "line\nbreak", "schlüssel-0123"])
def test_what_cannot_be_a_key_is_refused_and_not_shown(tmp_path, text):
    with pytest.raises(ProviderNotUsable, match="ANTHROPIC_API_KEY") as caught:
        key_of(PRESETS["claude"], tmp_path, {"ANTHROPIC_API_KEY": text})
    assert text not in caught.value.message


def test_a_local_server_needs_no_key(tmp_path):
    assert key_of(PRESETS["ollama"], tmp_path, {}) is None


# --- who can be used ----------------------------------------------------------------------------


def settings(tmp_path, **fields):
    return Settings(secrets_dir=tmp_path, **fields)


def why_not(found):
    return {name: each.why for name, each in found.items() if isinstance(each, NotUsable)}


def test_without_a_key_only_the_rules_and_the_coin_can_be_used(tmp_path, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MINIMAX_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    found = all_providers(settings(tmp_path))
    why = why_not(found)
    assert set(found) - set(why) == {"rules", "coin"}
    assert "ANTHROPIC_API_KEY" in why["claude"]
    assert "models" in why["ollama"]
    assert not any(each.expected for each in found.values() if isinstance(each, NotUsable))


@pytest.mark.parametrize("demo", [False, True])
def test_every_provider_there_is_has_a_name_that_filters_and_completion_know(tmp_path, demo):
    mine = {"gpu": {"base_url": "http://gpu:8000/v1", "models": {"small": "m"}}}
    has = settings(tmp_path, demo=demo, providers=mine)
    names = provider_names(has.providers, demo=has.demo)
    assert sorted(names) == sorted(all_providers(has))


def test_with_a_key_claude_plays_each_stage_on_its_size(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    set_to = {"claude": EndpointSettings(models={"trader": "claude-fable-5-1"})}
    claude = all_providers(settings(tmp_path, providers=set_to))["claude"]
    assert claude.model_for("sentiment", ModelSize.SMALL) == "claude-haiku-5-5"
    assert claude.model_for("research", ModelSize.MEDIUM) == "claude-sonnet-5-5"
    assert claude.model_for("trader", ModelSize.LARGE) == "claude-fable-5-1"


def test_an_unusable_provider_says_why_whatever_is_asked_of_it(make_plan_command, tmp_path):
    found = {"claude": NotUsable("claude", "claude has no key: set ANTHROPIC_API_KEY")}
    role = Role("planner", "planner", ModelSize.MEDIUM, Prompt.of("x"), found)
    with pytest.raises(ProviderNotUsable, match="ANTHROPIC_API_KEY"):
        role.played_for(make_plan_command(provider="claude"))
    with pytest.raises(ProviderUnknown):
        role.played_for(make_plan_command(provider="nobody"))


def test_an_endpoint_of_another_name_never_gets_the_presets_key():
    given = {"mine": EndpointSettings(preset="openai", base_url="https://elsewhere.example/v1")}
    mine = endpoints_of(Settings(providers=given))["mine"]
    assert mine.key_variable == "MINE_API_KEY"
    assert mine.capabilities.max_tokens_field == "max_completion_tokens"


def test_each_capability_can_be_set():
    given = {
        "lab": EndpointSettings(
            preset="vllm", output="json_object", reasoning_echo=True, parallel_calls=False
        )
    }
    lab = endpoints_of(Settings(providers=given))["lab"].capabilities
    assert (lab.output, lab.reasoning_echo, lab.parallel_calls) == (
        OutputMode.JSON_OBJECT,
        True,
        False,
    )


@pytest.mark.parametrize(
    "url", ["ftp://x", f"https://user:{KEY}@x/v1", f"https://x/v1?key={KEY}", "x"]
)
def test_an_address_with_a_secret_in_it_is_refused(url):
    with pytest.raises(ValidationError):
        EndpointSettings(base_url=url)


def test_a_pipelines_own_model_comes_before_the_settings():
    assert Pipeline(name="a", models={"trader": "m"}).models["trader"] == "m"
    assert (
        limits_of(
            Settings(
                model={"attempts_max": 2, "wait_s_max": 1},
            )
        ).attempts_max
        == 2
    )


def test_how_many_facts_a_call_shows_is_set_like_the_other_limits(monkeypatch):
    assert limits_of(Settings()) == AgentLimits()
    monkeypatch.setenv("DESKBUS_MODEL_FACTS_MAX", "25")
    assert limits_of(Settings()).facts_max == 25
    with pytest.raises(ValidationError):
        Settings(model={"facts_max": FACTS_MAX + 1})


def test_no_sdk_is_imported_before_the_first_call():
    code = (
        "import sys; from libs.llm.registry import all_providers; import services.cli.main; "
        "from libs.runtime.settings import Settings; all_providers(Settings()); "
        "print([m for m in ('anthropic', 'openai', 'httpx2') if m in sys.modules])"
    )
    environment = {
        "ANTHROPIC_API_KEY": KEY,
        "OPENAI_API_KEY": KEY,
        "PYTHONPATH": ":".join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
