"""When the contracts' validators are built."""

from contracts.message import Message, build_all
from contracts.types import Value


def test_a_contract_is_built_when_it_is_needed_or_with_all_others() -> None:
    class Part(Value):
        amount: int

    class Whole(Message):
        part: Part

    class Needed(Message):
        amount: int

    assert Needed(amount=1).amount == 1
    assert Needed.__pydantic_complete__
    assert not Part.__pydantic_complete__
    assert not Whole.__pydantic_complete__

    build_all()

    assert Part.__pydantic_complete__
    assert Whole.__pydantic_complete__
