"""Traces by OpenTelemetry: off, and nothing of it imported, unless an OTLP endpoint is named.

A cycle's id is its trace, and an operation's id is its span: so spans that are made in different
processes, or after a restart, stand in one tree without a word between them. Spans say who did what
and for how long; never a prompt, an answer, an argument or a key.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Where spans go, as OpenTelemetry names it; either turns traces on."""
EXPORT_TIMEOUT_S = 3
"""How long one export may take, and at the end the last one."""
TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
ERROR_TYPE = "error.type"

Attributes = Mapping[str, str | int]

log = structlog.get_logger()


@dataclass(frozen=True)
class Node:
    """A span that is known by its ids."""

    trace_id: int
    span_id: int

    @classmethod
    def of_cycle(cls, cycle_id: UUID) -> "Node":
        """The root of a cycle's trace."""
        return cls(cycle_id.int, cycle_id.int >> 64)

    @classmethod
    def of_header(cls, traceparent: str | None) -> "Node | None":
        """The node that a message's header names; None where it names none."""
        match = TRACEPARENT.fullmatch(traceparent or "")
        return cls(int(match[1], 16), int(match[2], 16)) if match else None

    @property
    def root(self) -> "Node":
        """The cycle's span."""
        return Node(self.trace_id, self.trace_id >> 64)


class OpenSpan:
    """A span while it is open; it records nothing where traces are off."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def tell(self, attributes: Attributes) -> None:
        """Add attributes."""
        if self._span is not None:
            self._span.set_attributes(attributes)

    def failed(self, code: str) -> None:
        """It ended with this failure."""
        if self._span is not None:
            from opentelemetry.trace import StatusCode  # noqa: PLC0415 - only where it is on

            self._span.set_attribute(ERROR_TYPE, code)
            self._span.set_status(StatusCode.ERROR)


_SILENT = OpenSpan()
_next: ContextVar[Node | None] = ContextVar("next", default=None)
"""The ids of the span that is being made, where they are known before."""
_tracers: list[Any] = []
"""The tracer, while traces are on."""
_providers: list[Any] = []
"""Its provider."""


def endpoint() -> str:
    """Where spans go; empty where traces are off."""
    return next(filter(None, map(os.environ.get, reversed(ENDPOINTS))), "")


@asynccontextmanager
async def traced(service: str, *, direct: bool = False) -> AsyncIterator[None]:
    """Spans of this process are exported while the block runs, where an endpoint is named; with
    `direct` past any proxy.
    """
    provider = _provider(service, direct) if endpoint() else None
    if provider is None:
        yield
        return
    tracer = provider.get_tracer("deskbus")
    _tracers.append(tracer)
    _providers.append(provider)
    try:
        yield
    finally:
        _tracers.remove(tracer)
        _providers.remove(provider)
        try:
            async with asyncio.timeout(EXPORT_TIMEOUT_S):
                await asyncio.to_thread(provider.shutdown)
        except TimeoutError:
            log.warning("traces.not_exported", timeout_s=EXPORT_TIMEOUT_S)


def tracer_provider() -> Any:
    """OpenTelemetry's provider, for libraries that make spans themselves; None where traces are
    off."""
    return _providers[-1] if _providers else None


def is_on() -> bool:
    """True where the traces of this process are exported."""
    return bool(_tracers)


@contextmanager
def span(name: str, attributes: Attributes) -> Iterator[OpenSpan]:
    """A span below the present one, while the block runs."""
    if not _tracers:
        yield _SILENT
        return
    # An error's words may quote a model: its code is told instead.
    with _tracers[-1].start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as otel_span:
        yield OpenSpan(otel_span)


@contextmanager
def below(node: Node | None) -> Iterator[None]:
    """Spans that the block makes stand below `node`."""
    if not _tracers or node is None:
        yield
        return
    from opentelemetry import context  # noqa: PLC0415

    token = context.attach(_context(node))
    try:
        yield
    finally:
        context.detach(token)


def ended(
    name: str, node: Node | None, began: datetime, attributes: Attributes, failure: str = ""
) -> None:
    """The span of an operation or a cycle, now that it is over; `failure` is a code."""
    if not _tracers or node is None:
        return
    from opentelemetry.context import Context  # noqa: PLC0415
    from opentelemetry.trace import SpanKind  # noqa: PLC0415

    is_cycle = node == node.root
    token = _next.set(node)
    try:
        otel_span = _tracers[-1].start_span(
            name,
            Context() if is_cycle else _context(node.root),
            SpanKind.INTERNAL if is_cycle else SpanKind.CONSUMER,
            attributes,
            start_time=int(began.astimezone(UTC).timestamp() * 1e9),
        )
    finally:
        _next.reset(token)
    if failure:
        OpenSpan(otel_span).failed(failure)
    otel_span.end()


def _context(node: Node) -> Any:
    """A context in which `node` is the present span."""
    from opentelemetry import trace  # noqa: PLC0415

    sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    known = trace.SpanContext(node.trace_id, node.span_id, is_remote=True, trace_flags=sampled)
    return trace.set_span_in_context(trace.NonRecordingSpan(known))


def _provider(service: str, direct: bool) -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON  # noqa: PLC0415
    except ImportError:
        log.warning("traces.not_installed", remedy="pip install 'deskbus[traces]'")
        return None

    class SpanIds(RandomIdGenerator):
        """Random ids, but for spans whose ids are known."""

        def generate_trace_id(self) -> int:
            known = _next.get()
            return super().generate_trace_id() if known is None else known.trace_id

        def generate_span_id(self) -> int:
            known = _next.get()
            return super().generate_span_id() if known is None else known.span_id

    # All of a cycle or nothing: which traces are kept, the collector decides.
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource.create({"service.name": service}),
        shutdown_on_exit=False,
        id_generator=SpanIds(),
    )
    session = None
    if direct:
        import requests  # noqa: PLC0415 - only where traces are on

        session = requests.Session()
        session.trust_env = False  # else it takes the environment's proxies
    exporter = OTLPSpanExporter(timeout=EXPORT_TIMEOUT_S, session=session)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
