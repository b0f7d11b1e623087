"""Bodies over HTTP: how they are read, written, and described in OpenAPI."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from contracts.cycle import RequestAnswer
from contracts.http import CycleAccepted, Problem
from contracts.message import Message
from libs.bus.codec import decode
from libs.web.problem import PROBLEM_JSON
from services.console.http.asked_schema import RequestSchema

ROOT = "/api/v1"
JSON = "application/json"

M = TypeVar("M", bound=Message)

REF = "#/components/schemas/{model}"
INPUT = "-Input"
"""Behind the name of a schema that a body is to fit."""


@dataclass(frozen=True)
class Body(Generic[M]):
    """A dependency: the request's body, read exactly as a message on the bus is, so that no field
    is unknown however deep, and there is no NaN and no NUL. FastAPI's own way refuses none of them.
    Without a body, where none `is_needed`, the model's defaults."""

    model: type[M]
    is_needed: bool = True

    async def __call__(self, request: Request) -> M:
        """Read it. Raises `MessageInvalid`."""
        body = await request.body()
        return decode(self.model, body if body or self.is_needed else b"{}")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a path may answer with, as OpenAPI has them."""
    schema = {"$ref": REF.format(model=Problem.__name__)}
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
        parts["schemas"] |= _schemas(Problem, REF)
        for route in iter_route_contexts(app.routes):
            _describe_body(route, document)
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        # Without a token set, the desk's own machine needs none.
        document["security"] = [{"token": []}, {}]
        app.openapi_schema = document
    return app.openapi_schema


def _describe_body(route: RouteContext, document: dict[str, Any]) -> None:
    if not isinstance(route.original_route, APIRoute):
        return
    for body in (part.call for part in route.original_route.dependant.dependencies):
        if not isinstance(body, Body):
            continue
        ref = REF + INPUT
        schema = {"$ref": ref.format(model=body.model.__name__)}
        described_body = {"required": body.is_needed, "content": {JSON: {"schema": schema}}}
        for method in route.methods or ():
            document["paths"][route.path][method.lower()]["requestBody"] = described_body
        schemas = _schemas(body.model, ref, RequestSchema)
        document["components"]["schemas"] |= {f"{name}{INPUT}": it for name, it in schemas.items()}


def _schemas(
    model: type[BaseModel], ref: str, generator: type[GenerateJsonSchema] = GenerateJsonSchema
) -> dict[str, Any]:
    """The model's schema and those that it refers to, by their names."""
    schema = model.model_json_schema(ref_template=ref, schema_generator=generator)
    return {**schema.pop("$defs", {}), model.__name__: schema}


def of_cycle(answer: RequestAnswer) -> CycleAccepted:
    """The orchestrator's yes to a cycle, as it is told."""
    if answer.cycle_id is None or answer.status is None:
        raise TypeError("the orchestrator accepted a request without its cycle")
    return CycleAccepted(cycle_id=answer.cycle_id, status=answer.status)
