"""What counts as a break of a published contract, and what does not."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from libs.bus.document.schema_changes import breaks


class Inner(BaseModel):
    amount: int
    side: Literal["buy", "sell"] = "buy"


class Told(BaseModel):
    name: str = Field(max_length=10)
    inner: Inner
    several: tuple[Inner, ...] = ()


def changed(**fields: Any) -> type[BaseModel]:
    """`Told` with fields replaced; None removes one."""
    annotations = {
        "name": (str, Field(max_length=10)),
        "inner": (Inner, ...),
        "several": (tuple[Inner, ...], ()),
        **fields,
    }
    namespace: dict[str, Any] = {"__annotations__": {}}
    for name, given in annotations.items():
        if given is None:
            continue
        namespace["__annotations__"][name] = given[0]
        if given[1] is not ...:
            namespace[name] = given[1]
    return type("Told", (BaseModel,), namespace)


class InnerWithout(BaseModel):
    side: Literal["buy", "sell"] = "buy"


class InnerWider(BaseModel):
    amount: int
    side: Literal["buy", "sell", "hold"] = "buy"


class InnerNarrower(BaseModel):
    amount: int
    side: Literal["buy", "hold"] = "buy"


def told_of(new: type[BaseModel]) -> list[str]:
    return breaks(Told.model_json_schema(), new.model_json_schema())


def test_nothing_changed_breaks_nothing() -> None:
    assert told_of(changed()) == []


def test_a_new_optional_field_breaks_nothing() -> None:
    assert told_of(changed(note=(str, ""))) == []


def test_new_words_break_nothing() -> None:
    words = Field(max_length=10, description="said better", title="Name")
    assert told_of(changed(name=(str, words))) == []


def test_an_enumeration_may_gain_values() -> None:
    assert told_of(changed(inner=(InnerWider, ...), several=(tuple[InnerWider, ...], ()))) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": None}, "name was removed"),
        ({"note": (str, ...)}, "note is new and required"),
        ({"name": (str, Field("x", max_length=10))}, "name became optional"),
        ({"several": (tuple[Inner, ...], ...)}, "several became required"),
        ({"name": (int, ...)}, "type changed from 'string' to 'integer'"),
        ({"name": (str, Field(max_length=9))}, "maxLength changed from 10 to 9"),
        ({"inner": (InnerWithout, ...)}, "inner.amount was removed"),
        ({"inner": (InnerNarrower, ...)}, "inner.side no longer allows sell"),
        ({"several": (tuple[InnerWithout, ...], ())}, "amount was removed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_everything_else_is_named(fields: dict[str, Any], said: str) -> None:
    assert said in "\n".join(told_of(changed(**fields)))


def test_a_schema_that_holds_itself_is_compared_once() -> None:
    class Tree(BaseModel):
        children: tuple["Tree", ...] = ()

    schema = Tree.model_json_schema()

    assert breaks(schema, schema) == []


def _default(schema: dict[str, Any], value: object) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], "inner": {"default": value}}}


def test_a_default_gains_what_a_new_optional_field_is_and_loses_nothing() -> None:
    schema = Told.model_json_schema()
    old = _default(schema, {"amount": 0})

    assert breaks(old, _default(schema, {"amount": 0, "fee": 0})) == []
    assert breaks(old, _default(schema, {"amount": 1, "fee": 0})) != []
    assert breaks(old, _default(schema, {"fee": 0})) != []
