"""What a person types becomes a request, or a sentence about the option at fault."""

import pytest

from contracts.cycle import CycleStatus, RequestAnswer
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.request import ENDS, CycleOptions, accepted, build


def test_the_first_pipeline_trades_main_and_others_an_account_of_their_name() -> None:
    made = build(CycleOptions(providers=["rules", "second=rules", "third=rules@lab"])).pipelines

    assert [(each.name, each.provider, each.account, each.account_named) for each in made] == [
        ("rules", "rules", "main", False),
        ("second", "rules", "second", False),
        ("third", "rules", "lab", True),
    ]


def test_an_account_given_for_all_is_the_first_pipelines() -> None:
    asked = build(
        CycleOptions(providers=["rules", "second=rules"], account="mine", rotation=("rules",))
    )
    first, second = asked.pipelines

    assert (first.account, second.account) == ("mine", "second")
    assert (first.account_named, second.account_named) == (True, False)


@pytest.mark.parametrize(
    ("wish", "option"),
    [
        (CycleOptions(account="é"), "--account"),
        (CycleOptions(providers=["rules", "second=rules"], account="é"), "--account"),
        (CycleOptions(providers=["rules@É"]), "--provider"),
        (CycleOptions(providers=["Rules"], account="mine"), "--provider"),
    ],
)
def test_what_no_pipeline_can_have_names_the_option_that_it_was_typed_at(
    wish: CycleOptions, option: str
) -> None:
    with pytest.raises(CliProblem, match=option) as refusal:
        build(wish)
    assert refusal.value.code is ExitCode.USAGE


def test_a_universe_is_split_put_in_capitals_and_named_once() -> None:
    request = build(CycleOptions(universe=("aapl,msft", " AAPL ,ibm")))

    assert request.universe == ("AAPL", "MSFT", "IBM")


def test_sources_are_split_and_named_once_and_none_means_all() -> None:
    request = build(CycleOptions(sources=("news,screener", " news ")))

    assert request.sources == ("news", "screener")
    assert build(CycleOptions()).sources == ()


def test_without_a_key_every_request_has_its_own() -> None:
    assert build(CycleOptions()).idempotency_key != build(CycleOptions()).idempotency_key


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        (CycleOptions(as_of="tomorrow"), "--as-of"),
        (CycleOptions(as_of="2012-13-01"), "--as-of"),
        (CycleOptions(universe=(",",)), "--universe"),
        (CycleOptions(sources=("",)), "--source"),
        (CycleOptions(sources=("no such name",)), "sources"),
        (CycleOptions(universe=("AAPL,bad ticker",)), "universe"),
        (CycleOptions(money="much"), "--max-money"),
        (CycleOptions(money="nan"), "--max-money"),
        (CycleOptions(money="-1"), "money: must not be negative"),
        (CycleOptions(cost_usd="1e999999999"), "cost_usd"),
        (CycleOptions(tokens=-1), "budgets.tokens"),
        (CycleOptions(timeout_s=-1), "timeout_s"),
        (CycleOptions(timeout_s=float("nan")), "timeout_s"),
        (CycleOptions(key="no spaces"), "idempotency_key"),
        (CycleOptions(providers=("a=b=c",)), "--provider"),
        (CycleOptions(providers=("UPPER",)), "--provider"),
        (CycleOptions(providers=("rules", "rules")), "two have the same name"),
        (CycleOptions(providers=("a=rules@x", "b=rules@x")), "two trade the same account"),
        (CycleOptions(kind="Not A Name"), "kind"),
        (CycleOptions(constraints=("max_position=3",)), "did you mean max_positions?"),
        (CycleOptions(constraints=("max_positions",)), "KEY=VALUE"),
        (CycleOptions(constraints=("max_positions=few",)), "a whole number from 0 to 500"),
    ],
)
def test_what_is_typed_wrong_is_a_usage_error_that_names_it(wish: CycleOptions, names: str) -> None:
    with pytest.raises(CliProblem) as caught:
        build(wish)

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
