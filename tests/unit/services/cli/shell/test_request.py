"""What a person types becomes a request, or a sentence about the option at fault."""

from dataclasses import fields
from typing import Any

import pytest

from contracts.cycle import CycleRequest, CycleStatus, RequestAnswer
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.request import ENDS, accepted, build
from services.cli.shell.request_options import DecisionOptions


def request(**typed: Any) -> CycleRequest:
    """The request of these options, and of what else commands give."""
    names = [field.name for field in fields(DecisionOptions) if field.name in typed]
    return build(DecisionOptions(**{name: typed.pop(name) for name in names}), **typed)


def test_the_first_pipeline_trades_main_and_others_an_account_of_their_name() -> None:
    made = request(provider=["rules", "second=rules", "third=rules@lab"]).pipelines

    assert [(each.name, each.provider, each.account, each.account_named) for each in made] == [
        ("rules", "rules", "main", False),
        ("second", "rules", "second", False),
        ("third", "rules", "lab", True),
    ]


def test_an_account_given_for_all_is_the_first_pipelines() -> None:
    asked = request(provider=["rules", "second=rules"], account="mine", rotation=("rules",))
    first, second = asked.pipelines

    assert (first.account, second.account) == ("mine", "second")
    assert (first.account_named, second.account_named) == (True, False)


@pytest.mark.parametrize(
    ("wish", "option"),
    [
        ({"account": "é"}, "--account"),
        ({"provider": ["rules", "second=rules"], "account": "é"}, "--account"),
        ({"provider": ["rules@É"]}, "--provider"),
        ({"provider": ["Rules"], "account": "mine"}, "--provider"),
    ],
)
def test_what_no_pipeline_can_have_names_the_option_that_it_was_typed_at(
    wish: dict[str, Any], option: str
) -> None:
    with pytest.raises(CliProblem, match=option) as refusal:
        request(**wish)
    assert refusal.value.code is ExitCode.USAGE


def test_a_universe_is_split_put_in_capitals_and_named_once() -> None:
    asked = request(universe=("aapl,msft", " AAPL ,ibm"))

    assert asked.universe == ("AAPL", "MSFT", "IBM")


def test_sources_are_split_and_named_once_and_none_means_all() -> None:
    asked = request(source=("news,screener", " news "))

    assert asked.sources == ("news", "screener")
    assert request().sources == ()


def test_without_a_key_every_request_has_its_own() -> None:
    assert request().idempotency_key != request().idempotency_key


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        ({"as_of": "tomorrow"}, "--as-of"),
        ({"as_of": "2012-13-01"}, "--as-of"),
        ({"universe": (",",)}, "--universe"),
        ({"source": ("",)}, "--source"),
        ({"source": ("no such name",)}, "sources"),
        ({"universe": ("AAPL,bad ticker",)}, "universe"),
        ({"max_money": "much"}, "--max-money"),
        ({"max_money": "nan"}, "--max-money"),
        ({"max_money": "-1"}, "money: must not be negative"),
        ({"max_cost": "1e999999999"}, "cost_usd"),
        ({"max_tokens": -1}, "budgets.tokens"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"key": "no spaces"}, "idempotency_key"),
        ({"provider": ("a=b=c",)}, "--provider"),
        ({"provider": ("UPPER",)}, "--provider"),
        ({"provider": ("rules", "rules")}, "two have the same name"),
        ({"provider": ("a=rules@x", "b=rules@x")}, "two trade"),
        ({"kind": "Not A Name"}, "kind"),
        ({"constraint": ("max_position=3",)}, "did you mean max_positions?"),
        ({"constraint": ("max_positions",)}, "KEY=VALUE"),
        ({"constraint": ("max_positions=few",)}, "from 0 to 500"),
    ],
)
def test_what_is_typed_wrong_is_a_usage_error_that_names_it(
    wish: dict[str, Any], names: str
) -> None:
    with pytest.raises(CliProblem) as caught:
        request(**wish)

    assert caught.value.code is ExitCode.USAGE
    assert names in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("key_reused", ExitCode.REJECTED),
        ("too_late", ExitCode.REJECTED),
        ("not_found", ExitCode.NOT_FOUND),
    ],
)
def test_a_no_from_the_desk_has_its_exit_code(code: str, exit_code: ExitCode) -> None:
    with pytest.raises(CliProblem) as caught:
        accepted(RequestAnswer(outcome="rejected", code=code, message="no", field="x"))

    assert caught.value.code is exit_code
    assert code in caught.value.message


def test_every_end_of_a_cycle_has_an_exit_code() -> None:
    assert set(ENDS) == set(CycleStatus)
    assert ENDS[CycleStatus.COMPLETED] == 0
    assert ENDS[CycleStatus.EXPIRED] == 4
