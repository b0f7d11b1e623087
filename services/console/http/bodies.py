"""Bodies over HTTP: how they are read, written, and described in OpenAPI."""

import json
import warnings
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from pydantic import ValidatorFunctionWrapHandler, WrapValidator
from pydantic.warnings import UnsupportedFieldAttributeWarning

from contracts.cycle import RequestAnswer
from contracts.http import CycleAccepted, Problem
from contracts.message import Message
from libs.bus.codec import decode
from libs.web.problem import PROBLEM_JSON

ROOT = "/api/v1"
REF = "#/components/schemas/{model}"

# FastAPI names each body, and silences this warning of Pydantic's about it. Our messages are built
# when they are first needed, which is later.
warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)


def Body(model: type[Message]) -> WrapValidator:  # noqa: N802 - stands where FastAPI's own does
    """For `Annotated`: a request's body, which FastAPI reads and describes. It is checked exactly
    as a message on the bus is: no field is unknown however deep, and no NaN and no NUL is taken."""

    def checked(value: Any, _: ValidatorFunctionWrapHandler) -> Message:
        return decode(model, json.dumps(value).encode())

    return WrapValidator(checked)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a path may answer with, as OpenAPI has them."""
    schema = {"$ref": REF.format(model=Problem.__name__)}
    content = {PROBLEM_JSON: {"schema": schema}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": content}
        for status in statuses
    }


class DeskApi(FastAPI):
    """An application whose OpenAPI document also says how a problem and the token look."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        document = super().openapi()
        parts = document["components"]
        parts["schemas"][Problem.__name__] = Problem.model_json_schema(ref_template=REF)
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        # Without a token set, the desk's own machine needs none.
        document["security"] = [{"token": []}, {}]
        return document


def of_cycle(answer: RequestAnswer) -> CycleAccepted:
    """The accepted cycle."""
    if answer.cycle_id is None or answer.status is None:
        raise TypeError("the orchestrator accepted a request without its cycle")
    return CycleAccepted(cycle_id=answer.cycle_id, status=answer.status)
