"""A daily report says which of its lists stop at their maximum."""

from contracts.report import LINES_MAX
from services.console.views.report import _left_out


def test_a_list_that_stops_at_its_maximum_is_named_with_the_command_that_has_all() -> None:
    lists = {"fill": ["x"] * (LINES_MAX + 1), "order": ["x"] * LINES_MAX, "stop": []}
    (line,) = _left_out(lists, "mine")
    assert line.what == "left_out"
    assert line.text == "this report has the first 200 fills of the session, not the others"
    assert line.todo == "deskbus trades mine --limit 200"
