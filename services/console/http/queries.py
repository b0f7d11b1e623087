"""The query of a request: what its path takes, read from the contract that asks for the same on the
bus. A name that the path does not take is refused."""

from collections.abc import Awaitable, Callable, Iterator
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeVar

from fastapi import Path, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BeforeValidator

from contracts.message import Message
from libs.runtime.errors import few
from libs.runtime.nearest import did_you_mean, nearest
from libs.web.problem import HttpProblem

Contract = TypeVar("Contract", bound=Message)


def _unless_empty(value: Any) -> Any:
    return value if value != "" else None


OrAll = BeforeValidator(_unless_empty)
"""For a filter of a page, which a form sends empty where it means all."""


def query_of(
    model: type[Contract], *, path: str = "", is_form: bool = False, **fixed: object
) -> Callable[..., Awaitable[Contract]]:
    """For `Depends`: the contract with its fields from an address, but for those `fixed` here.

    `path` is the field that stands in the path itself. A form's fields may be sent empty.
    """

    async def read(**given: object) -> Contract:
        return model.model_validate({**given, **fixed})

    # FastAPI reads what a dependency takes from its signature.
    read.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if field.is_required() else field.default,
                annotation=Annotated[
                    field.rebuild_annotation(),
                    *((OrAll,) if is_form and field.default is None else ()),
                    Path() if name == path else Query(description=field.description),
                ],
            )
            for name, field in model.model_fields.items()
            if name not in {*Message.model_fields, *fixed}
        ]
    )
    return read


def known_names(request: Request) -> None:
    """Refuse a query with a name that the path does not take.

    Left alone it would be answered as if it were not there: `acount=mine` with the books of `main`.
    """
    route: APIRoute = request.scope["route"]
    taken = tuple(dict.fromkeys(_names(route.dependant)))
    unknown = next((name for name in request.query_params if name not in taken), None)
    if unknown is None:
        return
    there = f"the path has only {few(taken)}" if taken else "the path has no query parameters"
    raise HttpProblem(
        422,
        "invalid",
        f"query.{unknown[:40]}: unknown; {there}{did_you_mean(nearest(unknown, taken))}",
        field=f"query.{unknown[:40]}",
    )


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for part in dependant.dependencies:
        yield from _names(part)
