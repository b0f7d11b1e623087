"""Results of tool calls: an answer, or an error in words that a model can act on."""

from collections.abc import Mapping
from typing import Any

import orjson
import structlog
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from libs.llm.reading.values import unquoted
from libs.market.tools.answers import RESULT_BYTES_MAX
from libs.runtime.errors import DeskError
from libs.runtime.setting_names import as_set
from libs.runtime.wording import describe
from services.mcp_server.tools import Answer, Tool, ToolFailed

NAME_CHARS = 40

log = structlog.get_logger()


async def called(
    tools: Mapping[str, Tool], name: str, arguments: Mapping[str, Any]
) -> CallToolResult:
    """The result of one call. What goes wrong is in it, with a code, and never quotes the input."""
    tool = tools.get(name)
    if tool is None:
        return _failed(
            "unknown_tool", f"no tool is named {name[:NAME_CHARS]!r}: {', '.join(tools)}"
        )
    try:
        # Many clients send lists and objects as text.
        answer = await tool.run(unquoted(arguments, tool.takes))
    except ValidationError as error:
        return _failed("bad_arguments", f"{describe(error)}; correct the arguments of {name}")
    except DeskError as error:
        more = error.answer if isinstance(error, ToolFailed) else None
        return _failed(error.code, error.message, more)
    except Exception:
        log.exception("mcp.failed", tool=name)
        return _failed("fault", f"{name} failed by a fault of the desk; its log says more")
    body = orjson.dumps(answer)
    if len(body) > RESULT_BYTES_MAX:
        text = (
            f"the answer has {len(body):,} bytes, the limit is {RESULT_BYTES_MAX:,}: ask for less"
        )
        return _failed("too_large", text)
    return CallToolResult(
        content=[TextContent(type="text", text=body.decode())], structured_content=dict(answer)
    )


def _failed(code: str, message: str, answer: Answer | None = None) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=f"{code}: {as_set(message)}")],
        structured_content=None if answer is None else dict(answer),
        is_error=True,
    )
