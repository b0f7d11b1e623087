"""A figure in a text leads to the result that it is from."""

from uuid import UUID

from contracts.operation import CallKind
from contracts.reasons import Figure, Loose
from libs.report.cited import cited_texts, results_by_id

OWN, EARLIER = UUID(int=1), UUID(int=2)


def figure(text: str, start: int, **fields: object) -> Figure:
    return Figure.model_validate(
        {"field": "assets.1.reasoning", "start": start, "text": text, "facts": ("A.close",)}
        | fields
    )


def test_every_figure_leads_to_its_call_or_the_step_that_gave_it_or_the_task() -> None:
    marks = (figure("1", 0, call="E3"), figure("2", 2, op_id=EARLIER), figure("3", 4))
    loose = Loose(field="assets.1.reasoning", start=6, text="4")
    result = {
        "assets": [{"reasoning": "other"}, {"reasoning": "1 2 3 4"}],
        "figures": [each.model_dump(mode="json") for each in marks],
        "loose": [loose.model_dump(mode="json")],
    }
    ((field, pieces),) = cited_texts(OWN, result)
    assert field == "assets.1.reasoning"
    assert [(each.text, each.href) for each in pieces if each.text.strip()] == [
        ("1", f"/operations/{OWN}?call=E3#E3"),
        ("2", f"/operations/{EARLIER}#out"),
        ("3", f"/operations/{OWN}#in"),
        ("4", ""),
    ]


def test_a_result_without_marks_or_cut_on_the_way_has_no_texts_to_show() -> None:
    assert cited_texts(OWN, None) == []
    assert cited_texts(OWN, {"reasoning": "1"}) == []
    assert cited_texts(OWN, {"reasoning": "1", "figures": "(cut)"}) == []
    lost = figure("1", 0, field="assets.7.reasoning").model_dump(mode="json")
    assert cited_texts(OWN, {"assets": [], "figures": [lost]}) == []


def test_results_are_the_calls_of_tools_and_what_was_read_before_the_first_turn() -> None:
    tool, read, model = CallKind.TOOL, CallKind.READ, CallKind.MODEL
    asked = dict(enumerate((model, tool, tool, model, tool, model, read)))
    assert results_by_id(asked) == {"E0": 1, "E1": 2, "E2": 4}
    given = dict(enumerate((read, read, model, read)))
    assert results_by_id(given) == {"E0": 0, "E1": 1}
    assert results_by_id({0: read, 1: read}) == {}
