"""The form of a cycle: which request it stands for, and at which field each problem is told."""

from urllib.parse import urlencode

import pytest
from pydantic import ValidationError

from contracts.cycle import RequestAnswer
from contracts.provider import ProviderStanding
from services.console.pages.request import form as forms
from services.console.pages.request.form import FIELDS_MAX, WHOLE, Form, PipelineRow, read

KEY = "page-0123456789abcdef"


def sent(*fields: tuple[str, str]) -> Form:
    return read(urlencode(fields), KEY)[0]


def rows(*pairs: tuple[str, str]) -> Form:
    return sent(*(each for p, a in pairs for each in (("provider", p), ("account", a))))


def faults(form: Form) -> dict[str, str]:
    with pytest.raises(ValidationError) as error:
        form.request()
    return {name: fault.text for name, fault in forms.faults_of(error.value, form).items()}


def test_an_empty_form_asks_for_a_decision_of_the_rules_and_leaves_the_rest_to_the_desk():
    request = sent().request()
    assert (request.kind, request.as_of, request.universe) == ("decision", None, None)
    assert [(each.name, each.account) for each in request.pipelines] == [("rules", "main")]


def test_rows_are_pipelines_and_empty_ones_are_none():
    request = rows(("rules", ""), ("", ""), ("claude", "")).request()
    made = [(each.name, each.provider, each.account) for each in request.pipelines]
    assert made == [("rules", "rules", "main"), ("claude", "claude", "claude")]


def test_two_rows_of_one_provider_are_told_apart_by_their_accounts():
    request = rows(("rules", ""), ("rules", "paper")).request()
    assert [(each.name, each.account) for each in request.pipelines] == [
        ("rules", "main"),
        ("paper", "paper"),
    ]
    assert "account-1" in faults(rows(("rules", ""), ("rules", "")))


def test_pressed_twice_it_is_one_cycle_and_changed_in_between_another():
    first, again = sent(("universe", "AAPL")), sent(("universe", "AAPL"))
    other = sent(("universe", "MSFT"))
    assert first.request().idempotency_key == again.request().idempotency_key
    assert first.request().idempotency_key != other.request().idempotency_key
    assert read(urlencode({"key": "page-fedcba9876543210"}), KEY)[0].key != KEY
    assert read(urlencode({"key": "somebody's"}), KEY)[0].key == KEY


def test_every_problem_stands_at_its_own_field():
    form = sent(
        ("money", "much"),
        ("tokens", "-1"),
        ("timeout_s", "0"),
        ("universe", "AAPL, <b>"),
        ("provider", "rules"),
        ("account", "Not A Name"),
        ("provider", "rules"),
        ("account", "paper"),
    )
    assert set(faults(form)) == {"money", "tokens", "timeout_s", "universe", "account-0"}


def test_a_row_is_counted_among_the_typed_ones_when_one_before_it_is_empty():
    form = rows(("", ""), ("rules", "Not A Name"))
    assert set(faults(form)) == {"account-1"}


@pytest.mark.parametrize("text", ["2012", "1340928000", "29.06.2012", "tomorrow"])
def test_what_is_no_date_is_no_second_since_1970_either(text: str):
    assert set(forms.typed_faults(sent(("as_of", text)))) == {"as_of"}


def test_a_form_with_no_row_that_says_anything_is_told_so():
    assert set(forms.typed_faults(rows(("", "")))) == {"provider-0"}


def test_a_closed_day_is_refused_at_its_field_with_the_nearest_session_to_take():
    form = sent(("as_of", "2012-06-30"))
    answer = RequestAnswer(
        outcome="rejected",
        code="not_a_session",
        field="as_of",
        message="2012-06-30 is a weekend; use 2012-06-29; did you mean 2012-06-29?",
        given="2012-06-30",
        suggestion="2012-06-29",
    )
    (name, fault), *others = forms.refusal_of(answer, form).items()
    assert (name, others) == ("as_of", [])
    assert fault.text == "2012-06-30 is a weekend; use 2012-06-29."
    assert fault.offer == "Use Fri 2012-06-29"
    assert form.acted(fault.use(name)).text("as_of") == "2012-06-29"


def test_a_mistyped_ticker_is_put_right_and_the_others_stay():
    form = sent(("universe", "AAPL, MSTF IBM"))
    answer = RequestAnswer(
        outcome="rejected", field="universe", message="no", given="MSTF", suggestion="MSFT"
    )
    fault = forms.refusal_of(answer, form)["universe"]
    assert form.acted(fault.use("universe")).text("universe") == "AAPL, MSFT, IBM"


def test_a_provider_is_refused_at_its_row_and_what_is_of_no_field_above_all():
    form = rows(("rules", ""), ("claude", ""))
    refused = RequestAnswer(outcome="rejected", field="pipelines", message="no", given="claude")
    assert set(forms.refusal_of(refused, form)) == {"provider-1"}
    busy = RequestAnswer(outcome="rejected", code="busy", message="come again")
    assert forms.refusal_of(busy, form)[WHOLE].text == "Come again."


def test_providers_that_cannot_be_used_are_told_before_anything_is_sent():
    standings = [
        ProviderStanding(name="rules", usable=True),
        ProviderStanding(name="claude", usable=False, why="claude has no key"),
    ]
    form = rows(("rules", ""), ("claude", ""), ("clade", ""))
    assert {name: fault.text for name, fault in forms.standing_faults(form, standings).items()} == {
        "provider-1": "Claude has no key.",
        "provider-2": "This desk has no provider clade.",
    }
    assert forms.standing_faults(form, ()) == {}, "nobody who knows has answered"


def test_exits_and_reports_ask_only_for_what_they_need():
    sold = sent(
        ("kind", "exit"),
        ("account", "paper"),
        ("money", "5"),
        ("universe", "AAPL"),
        ("approval", "yes"),
    ).request()
    assert (sold.kind, sold.universe, sold.budgets.money) == ("exit", None, None)
    assert sold.approval_required
    assert [(each.provider, each.account) for each in sold.pipelines] == [("rules", "paper")]
    report = sent(("kind", "report"), ("approval", "yes"), ("timeout_s", "1")).request()
    assert (report.kind, report.approval_required, report.timeout_s) == ("report", False, None)


def test_rows_are_added_and_removed_and_nonsense_changes_nothing():
    form = rows(("rules", ""))
    more = form.acted("add")
    assert (more.rows, more.focus) == ((PipelineRow(), PipelineRow()), "provider-1")
    assert list(more.acted("remove-0").rows) == [PipelineRow()]
    for act in ("remove-0", "remove-7", "remove-x", "use-colour- red", "use", "drop"):
        assert form.acted(act) == form, act
    for _ in range(20):
        more = more.acted("add")
    assert len(more.rows) == 8


def test_a_form_of_more_fields_than_any_has_is_refused():
    with pytest.raises(ValueError, match="fields"):
        sent(*[("provider", "rules")] * (FIELDS_MAX + 1))
