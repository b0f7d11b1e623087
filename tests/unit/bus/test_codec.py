"""The edge between bytes and contracts."""

import json
from datetime import date
from uuid import UUID

import pytest

from contracts.account_query import AccountQuery
from contracts.cycle import CancelCycle, CycleRequest
from contracts.halt import HaltTrading
from contracts.message import MESSAGE_BYTES_MAX, Request
from contracts.operation import Result
from libs.bus.codec import MessageInvalid, MessageTooLarge, decode, encode

OP = UUID(int=7)


def request(**fields: object) -> bytes:
    return json.dumps({"idempotency_key": "k", **fields}).encode()


def test_a_message_survives_the_round_trip() -> None:
    sent = CycleRequest(idempotency_key="k", as_of=date(2012, 6, 29), universe=("AAPL",))
    assert decode(CycleRequest, encode(sent)) == sent


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", "body"),
        (b"[]", "body"),
        (request(version=2), "version"),
        (request(unheard_of=1), "unheard_of"),
        (request(timeout_s="soon"), "timeout_s"),
        (request(timeout_s=-1), "timeout_s"),
        (request(universe=[]), "universe"),
        (request(universe=["not a ticker"]), "universe.0"),
        (request(as_of="2012-02-30"), "as_of"),
        (request(budgets={"tokens": -1}), "budgets.tokens"),
        (request(budgets={"money": {"amount": "-1", "currency": "USD"}}), "budgets.money"),
        (request(idempotency_key=""), "idempotency_key"),
        (request(pipelines=[{"name": "a"}, {"name": "a", "account": "b"}]), "pipelines"),
    ],
)
def test_a_bad_request_is_refused_by_the_name_of_its_field(body: bytes, field: str) -> None:
    with pytest.raises(MessageInvalid) as refused:
        decode(CycleRequest, body)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("model", "body", "field"),
    [
        (HaltTrading, b'{"account": "x", "account": null}', "account"),
        (HaltTrading, b'{"account": "x", "\\u0061ccount": null}', "account"),
        (CycleRequest, request(budgets={})[:-1] + b', "budgets": {}}', "budgets"),
        (
            CycleRequest,
            b'{"idempotency_key": "k", "budgets": {"tokens": 1, "tokens": 9}}',
            "tokens",
        ),
    ],
)
def test_a_request_that_says_one_thing_twice_is_refused(
    model: type[Request], body: bytes, field: str
) -> None:
    with pytest.raises(MessageInvalid, match="appears twice") as refused:
        decode(model, body)
    assert refused.value.field == field


def test_a_question_of_people_that_says_one_thing_twice_is_refused() -> None:
    body = b'{"account": "x", "account": "y"}'
    assert decode(AccountQuery, body).account == "y"
    with pytest.raises(MessageInvalid, match="appears twice"):
        decode(AccountQuery, body, by_people=True)


def test_the_error_does_not_quote_the_input() -> None:
    with pytest.raises(MessageInvalid) as refused:
        decode(CycleRequest, request(timeout_s="secret-secret"))
    assert "secret" not in refused.value.message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused_even_in_free_json(number: str) -> None:
    body = f'{{"op_id": "{OP}", "contract": {{"deep": [{number}]}}}}'.encode()
    with pytest.raises(MessageInvalid, match="JSON"):
        decode(Result, body)


def test_a_nul_in_a_text_is_refused_wherever_it_stands() -> None:
    body = json.dumps({"op_id": str(OP), "contract": {"a": {"b\x00": 1}}}).encode()
    with pytest.raises(MessageInvalid, match="NUL"):
        decode(Result, body)


def test_a_text_that_merely_spells_a_nul_or_nan_is_let_through() -> None:
    text = "a backslash \\u0000, NaN and Infinity"
    body = json.dumps({"op_id": str(OP), "contract": {"text": text}}).encode()
    assert decode(Result, body).contract == {"text": text}


def test_a_message_above_the_limit_is_refused_at_the_sender_and_at_the_reader() -> None:
    big = Result(op_id=OP, contract={"text": "x" * MESSAGE_BYTES_MAX})
    with pytest.raises(MessageTooLarge, match="limit"):
        encode(big)
    with pytest.raises(MessageInvalid, match="limit"):
        decode(Result, big.model_dump_json().encode())


def test_a_reader_of_a_contract_ignores_what_it_does_not_know() -> None:
    body = json.dumps({"op_id": str(OP), "from_a_later_version": 1}).encode()
    assert decode(Result, body).op_id == OP


def test_a_request_with_an_unknown_field_is_not_let_through() -> None:
    body = json.dumps({"cycle_id": str(OP), "reaason": "typing mistake"}).encode()
    with pytest.raises(MessageInvalid) as refused:
        decode(CancelCycle, body)
    assert refused.value.field == "reaason"
