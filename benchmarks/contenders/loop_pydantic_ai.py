"""The loop benchmark's task through pydantic-ai, as its documentation shows it."""

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai import Agent, ModelSettings
from pydantic_ai.models import Model

from benchmarks.contenders import loop_task
from benchmarks.contenders.loop_task import ASKED, KEY, MODELS, SYSTEM, TIMEOUT_S, TOOLS, Answer
from libs.llm.provider import OUTPUT_TOKENS_MAX
from libs.runtime.loop import run


def model_of(given: loop_task.Options) -> Model:
    """The model over the same SDK; its own retries are off, as ours are."""
    if given.sdk == "claude":
        from anthropic import AsyncAnthropic  # noqa: PLC0415 - one SDK a process, as it is measured
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

        claude = AsyncAnthropic(api_key=KEY, base_url=given.url, max_retries=0, timeout=TIMEOUT_S)
        return AnthropicModel(MODELS["claude"], provider=AnthropicProvider(anthropic_client=claude))
    from openai import AsyncOpenAI  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    client = AsyncOpenAI(api_key=KEY, base_url=f"{given.url}/v1", max_retries=0, timeout=TIMEOUT_S)
    return OpenAIChatModel(MODELS["openai"], provider=OpenAIProvider(openai_client=client))


def agent_of(given: loop_task.Options) -> Agent[None, Answer]:
    """An agent with the three tools."""
    # Without a limit it would stream from the Anthropic API; ours is what the desk asks for.
    settings = ModelSettings(max_tokens=OUTPUT_TOKENS_MAX)
    agent = Agent(model_of(given), output_type=Answer, instructions=SYSTEM, model_settings=settings)
    for name, description in TOOLS.items():
        agent.tool_plain(name=name, description=description)(tool(name))
    return agent


def tool(name: str) -> Callable[[str], Awaitable[dict[str, Any]]]:
    """One tool; its schema is made from its signature."""

    async def asked(ticker: str) -> dict[str, Any]:
        return loop_task.result_of(name, ticker)

    return asked


async def main() -> None:
    """Run the task."""
    given = loop_task.options()
    agent = agent_of(given)

    async def once() -> Answer:
        return (await agent.run(str(ASKED))).output

    await loop_task.measured(once, given)


if __name__ == "__main__":
    run(main())
