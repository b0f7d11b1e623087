"""Bodies over HTTP: how they are read, written, and described in OpenAPI."""

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import date
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, BeforeValidator
from pydantic.json_schema import GenerateJsonSchema

from contracts.cycle import RequestAnswer
from contracts.halt import HaltTrading, ResumeTrading
from contracts.http import (
    CycleAccepted,
    CycleWish,
    LogIn,
    PositionSale,
    Problem,
    ProposalAnswer,
    ProposalApproval,
    RunWish,
    Trigger,
    Why,
)
from contracts.message import Message
from contracts.study import RunStudy
from libs.bus.codec import decode
from libs.web.problem import PROBLEM_JSON
from services.console.http.asked_schema import Asked

JSON = "application/json"

M = TypeVar("M", bound=Message)

ASKED = (
    *(LogIn, Trigger, CycleWish, ProposalAnswer, ProposalApproval),
    *(Why, RunWish, HaltTrading, ResumeTrading, PositionSale, RunStudy),
)
"""The bodies that are taken."""
ASKED_SUFFIX = "-Input"
SAID_REF = "#/components/schemas/{model}"
ASKED_REF = f"{SAID_REF}{ASKED_SUFFIX}"


def _written_as_a_day(text: str) -> str:
    """Pydantic takes a bare number for seconds since 1970."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text) is None:
        raise ValueError("write a day as in 2012-06-29")
    return text


Day = Annotated[date, BeforeValidator(_written_as_a_day)]
"""A day in a path's query."""


def asked(model: type[Message], *, needed: bool = True) -> dict[str, Any]:
    """How OpenAPI says that a path takes this body."""
    schema = {"$ref": ASKED_REF.format(model=model.__name__)}
    return {"requestBody": {"required": needed, "content": {JSON: {"schema": schema}}}}


def body_of(model: type[M], *, needed: bool = True) -> Callable[[Request], Awaitable[M]]:
    """The request's body, read exactly as a message on the bus is: no unknown field however deep,
    no NaN, no NUL. Without one, where it is not needed, the model's defaults."""

    async def read(request: Request) -> M:
        body = await request.body()
        return decode(model, body if body or needed else b"{}")

    return read


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a path may answer with, as OpenAPI has them."""
    schema = {"$ref": SAID_REF.format(model=Problem.__name__)}
    content = {PROBLEM_JSON: {"schema": schema}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in statuses
    }


def described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        parts = document["components"]
        parts["schemas"] |= _schemas(Problem, SAID_REF, "")
        for model in ASKED:
            parts["schemas"] |= _schemas(model, ASKED_REF, ASKED_SUFFIX, Asked)
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        # Without a token set, the desk's own machine needs none.
        document["security"] = [{"token": []}, {}]
        app.openapi_schema = document
    return app.openapi_schema


def _schemas(
    model: type[BaseModel],
    ref: str,
    suffix: str,
    generator: type[GenerateJsonSchema] = GenerateJsonSchema,
) -> dict[str, Any]:
    """The model's schema and those that it refers to, by the names that `ref` makes."""
    schema = model.model_json_schema(ref_template=ref, schema_generator=generator)
    schemas = {**schema.pop("$defs", {}), model.__name__: schema}
    return {f"{name}{suffix}": part for name, part in schemas.items()}


def of_cycle(answer: RequestAnswer) -> CycleAccepted:
    """The orchestrator's yes to a cycle, as it is told."""
    if answer.cycle_id is None or answer.status is None:
        raise TypeError("the orchestrator accepted a request without its cycle")
    return CycleAccepted(cycle_id=answer.cycle_id, status=answer.status)


def json_of(
    body: BaseModel, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    """The body as it is: pydantic writes it once, FastAPI need not look at it again."""
    return Response(body.model_dump_json(), status, dict(headers or {}), JSON)
