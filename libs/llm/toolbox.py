"""The tools that one agent may call: those of its executors, cut to its allow-list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from pydantic import JsonValue

from contracts.types import ToolDef
from libs.llm.errors import ToolNotAllowed

CODE_ONLY = "code_only"
"""The key of a result's part that code reads and the model is not sent, such as its own words."""


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

    @cached_property
    def definitions(self) -> tuple[ToolDef, ...]:
        """The allowed tools, in the executors' order."""
        return tuple(tool for tool, _ in self._owners.values())

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Run an allowed tool; ToolNotAllowed for any other."""
        if name not in self._owners:
            names = ", ".join(self._owners) or "none"
            raise ToolNotAllowed(f"no tool of this name; the tools are: {names}")
        return await self._owners[name][1].call(name, arguments)

    @cached_property
    def _owners(self) -> Mapping[str, tuple[ToolDef, ToolExecutor]]:
        owners: dict[str, tuple[ToolDef, ToolExecutor]] = {}
        for executor in self.executors:
            for tool in executor.definitions():
                if tool.name in self.allowed:
                    owners.setdefault(tool.name, (tool, executor))
        return owners
