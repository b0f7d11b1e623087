"""What a person types becomes a request, or a sentence about the option at fault."""

import pytest

from contracts.cycle import CycleStatus, RequestAnswer
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.request import ENDS, Wish, accepted, build
from services.cli.shell.typed import corrected


def test_the_first_pipeline_trades_main_and_others_an_account_of_their_name() -> None:
    made = build(Wish(providers=["rules", "second=rules", "third=rules@lab"])).pipelines

    assert [(each.name, each.provider, each.account, each.account_named) for each in made] == [
        ("rules", "rules", "main", False),
        ("second", "rules", "second", False),
        ("third", "rules", "lab", True),
    ]


def test_an_account_given_for_all_is_the_first_pipelines() -> None:
    asked = build(Wish(providers=["rules", "second=rules"], account="mine", rotation=("rules",)))
    first, second = asked.pipelines

    assert (first.account, second.account) == ("mine", "second")
    assert (first.account_named, second.account_named) == (True, False)


@pytest.mark.parametrize(
    ("wish", "option"),
    [
        (Wish(account="é"), "--account"),
        (Wish(providers=["rules", "second=rules"], account="é"), "--account"),
        (Wish(providers=["rules@É"]), "--provider"),
        (Wish(providers=["Rules"], account="mine"), "--provider"),
    ],
)
def test_what_no_pipeline_can_have_names_the_option_that_it_was_typed_at(
    wish: Wish, option: str
) -> None:
    with pytest.raises(Problem, match=option) as refusal:
        build(wish)
    assert refusal.value.code is ExitCode.USAGE


def test_a_universe_is_split_put_in_capitals_and_named_once() -> None:
    request = build(Wish(universe=("aapl,msft", " AAPL ,ibm")))

    assert request.universe == ("AAPL", "MSFT", "IBM")


def test_sources_are_split_and_named_once_and_none_means_all() -> None:
    request = build(Wish(sources=("news,screener", " news ")))

    assert request.sources == ("news", "screener")
    assert build(Wish()).sources == ()


def test_without_a_key_every_request_has_its_own() -> None:
    assert build(Wish()).idempotency_key != build(Wish()).idempotency_key


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        (Wish(as_of="tomorrow"), "--as-of"),
        (Wish(as_of="2012-13-01"), "--as-of"),
        (Wish(universe=(",",)), "--universe"),
        (Wish(sources=("",)), "--source"),
        (Wish(sources=("no such name",)), "sources"),
        (Wish(universe=("AAPL,bad ticker",)), "universe"),
        (Wish(money="much"), "--max-money"),
        (Wish(money="nan"), "--max-money"),
        (Wish(money="-1"), "money: must not be negative"),
        (Wish(cost_usd="1e999999999"), "cost_usd"),
        (Wish(tokens=-1), "budgets.tokens"),
        (Wish(timeout_s=-1), "timeout_s"),
        (Wish(timeout_s=float("nan")), "timeout_s"),
        (Wish(key="no spaces"), "idempotency_key"),
        (Wish(providers=("a=b=c",)), "--provider"),
        (Wish(providers=("UPPER",)), "--provider"),
        (Wish(providers=("rules", "rules")), "two have the same name"),
        (Wish(providers=("a=rules@x", "b=rules@x")), "two trade the same account"),
        (Wish(kind="Not A Name"), "kind"),
        (Wish(constraints=("max_position=3",)), "did you mean max_positions?"),
        (Wish(constraints=("max_positions",)), "KEY=VALUE"),
        (Wish(constraints=("max_positions=few",)), "a whole number from 0 to 500"),
    ],
)
def test_what_is_typed_wrong_is_a_usage_error_that_names_it(wish: Wish, names: str) -> None:
    with pytest.raises(Problem) as caught:
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
    with pytest.raises(Problem) as caught:
        accepted(RequestAnswer(outcome="rejected", code=code, message="no", field="x"))

    assert caught.value.code is exit_code
    assert code in caught.value.message


def test_every_end_of_a_cycle_has_an_exit_code() -> None:
    assert set(ENDS) == set(CycleStatus)
    assert ENDS[CycleStatus.COMPLETED] == 0
    assert ENDS[CycleStatus.EXPIRED] == 4


@pytest.mark.parametrize(
    ("typed", "field", "given", "suggestion", "works"),
    [
        (
            "cycle request --as-of 2012-06-30",
            "as_of",
            "2012-06-30",
            "2012-06-29",
            "--as-of 2012-06-29",
        ),
        (
            "cycle request --as-of=2030-01-01 --wait",
            "as_of",
            "2030-01-01",
            "2013-03-01",
            "--as-of=2013-03-01 --wait",
        ),
        ("run", "as_of", "2012-06-30", "2012-06-29", "run --as-of 2012-06-29"),
        (
            "cycle request --source screenr,news",
            "sources",
            "screenr",
            "screener",
            "--source screener,news",
        ),
        ("cycle request --kind exits", "kind", "exits", "exit", "--kind exit"),
        ("cycle request --universe appl,MSFT", "universe", "APPL", "AAPL", "--universe AAPL,MSFT"),
        (
            "cycle request --provider b=clade@x",
            "pipelines",
            "clade",
            "rules",
            "--provider b=rules@x",
        ),
        ("cycle request --universe AAPL,zzzz", "universe", "ZZZZ", None, "--universe AAPL"),
        ("cycle request --universe ZZZZ,AAPL", "universe", "ZZZZ", None, "--universe AAPL"),
        ("cycle request --universe ZZZZ --wait", "universe", "ZZZZ", None, "request --wait"),
        ("cycle request --universe=ZZZZ --wait", "universe", "ZZZZ", None, "request --wait"),
        ("cycle request --universe BRK.B,B", "universe", "B", None, "--universe BRK.B"),
    ],
)
def test_a_refused_command_is_shown_as_one_that_works(
    typed: str, field: str, given: str, suggestion: str | None, works: str
) -> None:
    made = corrected(typed.split(), field, given, suggestion)
    assert made.startswith("deskbus ")
    assert made.endswith(works)


def test_a_command_without_what_it_is_about_is_none() -> None:
    assert corrected(["exit", "now", "ZZZZ"], "sell_now.ticker", "ZZZZ", None) == ""
