"""The desk's own Markdown as blocks: what a report may hold, and what it may not do."""

from services.console.pages.prose import Span, blocks, spans

TABLE = "| asset | gain |\n| ----- | ---: |\n| AAPL  | +1.00 |"


def test_headings_lists_and_paragraphs_are_told_apart() -> None:
    kinds = [each.kind for each in blocks("# One\n\n## Two\n\n- a\n- b\n\nplain\ntext\n")]
    assert kinds == ["h1", "h2", "list", "p"]
    assert blocks("- a\n- b")[0].rows == (((Span("text", "a"),),), ((Span("text", "b"),),))


def test_a_table_knows_its_head_and_its_columns_of_numbers() -> None:
    (table,) = blocks(TABLE)
    assert table.right == (False, True)
    assert [[cell[0].text for cell in row] for row in table.rows] == [
        ["asset", "gain"],
        ["AAPL", "+1.00"],
    ]


def test_marks_inside_a_line_become_spans() -> None:
    assert spans("**12** of `deskbus dlq list`") == (
        Span("strong", "12"),
        Span("text", " of "),
        Span("code", "deskbus dlq list"),
    )


def test_what_a_stranger_wrote_stays_text() -> None:
    text = "[x](javascript:alert(1)) <script>&lt;b&gt;"
    assert spans(text) == (Span("text", "[x](javascript:alert(1)) <script><b>"),)
    assert blocks("") == []
