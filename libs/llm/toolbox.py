"""What one agent may call: the tools of one or more executors, cut to its allow-list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from contracts.types import ToolDef
from libs.llm.errors import ToolNotAllowed


class ToolExecutor(Protocol):
    """Runs read-only tools. `call` raises DeskError where a tool cannot answer."""

    def definitions(self) -> Sequence[ToolDef]:
        """The tools it has."""
        ...

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The result of one call."""
        ...


@dataclass(frozen=True)
class Toolbox:
    """The allow-list of one agent over executors; the first executor that has a tool runs it."""

    executors: Sequence[ToolExecutor]
    allowed: frozenset[str]

    def definitions(self) -> tuple[ToolDef, ...]:
        """The allowed tools, in the executors' order."""
        found: dict[str, ToolDef] = {}
        for executor in self.executors:
            for tool in executor.definitions():
                if tool.name in self.allowed:
                    found.setdefault(tool.name, tool)
        return tuple(found.values())

    def check(self, name: str) -> None:
        """Raise ToolNotAllowed where the agent may not call `name`, or nobody has it."""
        self._executor(name)

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Run an allowed tool; ToolNotAllowed for any other."""
        return await self._executor(name).call(name, arguments)

    def _executor(self, name: str) -> ToolExecutor:
        if name in self.allowed:
            for executor in self.executors:
                if any(tool.name == name for tool in executor.definitions()):
                    return executor
        names = ", ".join(tool.name for tool in self.definitions()) or "none"
        raise ToolNotAllowed(f"{name[:80]} is not a tool you may call; yours are: {names}")
