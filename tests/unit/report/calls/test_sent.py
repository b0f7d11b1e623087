"""What a call was sent, and its difference to the call before."""

from uuid import UUID

from libs.llm.provider import ModelReply
from libs.report.calls.chat import Chat, ChatRole, Spoken, Turn
from libs.report.calls.sent import ROWS_MAX, described, difference, sent_texts
from tests.fakes.scripted_model import asks
from tests.unit.report.calls.test_chat import BAD, GOOD, A, chats, recorded

OP = UUID(int=1)


def chat(*texts: str, system: str = "Be brief.") -> Chat:
    """A call that was sent these messages."""
    asked = [Turn(ChatRole.SYSTEM, system), *(Turn(ChatRole.USER, text) for text in texts)]
    return Chat(before=(), asked=asked, reply=())


def changes(before: Chat, now: Chat) -> list[str]:
    return [
        f"{line.sign} {line.part}: {line.text}" for line in difference(before, now, OP, 3).lines
    ]


def test_a_fact_that_changed_stands_before_what_it_is_now() -> None:
    old = chat(
        '<task>\n{"as_of":"2012-06-29"}\n</task>\n<facts>\nA.close = 1\nB.close = 2\n</facts>'
    )
    new = chat(
        '<task>\n{"as_of":"2012-07-02"}\n</task>\n<facts>\nB.close = 2\nA.close = 3\n</facts>'
    )
    assert changes(old, new) == [
        '- task: as_of = "2012-06-29"',
        '+ task: as_of = "2012-07-02"',
        "- facts: A.close = 1",
        "+ facts: A.close = 3",
    ]
    told = difference(old, new, OP, 3)
    assert told.same == ("system prompt",)
    table = described(told)
    assert len(table.rows) == 4
    assert [note.text for note in table.notes] == [
        "The previous call is number 3 of operation 00000000.",
        "The same: system prompt.",
    ]
    assert table.notes[0].link == f"/operations/{OP}/calls/3"


def test_items_of_a_list_are_compared_by_their_ticker_not_their_place() -> None:
    old = chat('{"assets":[{"ticker":"A","n":1},{"ticker":"B","n":1}],"held":["X","Y"]}')
    new = chat('{"held":["Y","Z"],"assets":[{"ticker":"B","n":1},{"ticker":"A","n":2}]}')
    assert changes(old, new) == [
        '- message: held[] = "X"',
        '+ message: held[] = "Z"',
        "- message: assets[A].n = 1",
        "+ message: assets[A].n = 2",
    ]


def test_the_same_call_has_no_difference_and_says_so() -> None:
    told = difference(chat("x"), chat("x"), OP, 3)
    assert told.lines == ()
    assert described(told).empty.text == "Both were sent the same."
    assert "the last decisions of the account have none" in described(None).empty.text


def test_lines_that_only_moved_are_no_difference_and_not_called_the_same() -> None:
    old = chat('<facts>\nA = 1\nB = 2\n</facts>\n<task>\n{"a":1,"b":2}\n</task>')
    new = chat('<facts>\nB = 2\nA = 1\n</facts>\n<task>\n{"a":1,"b":2}\n</task>')
    told = difference(old, new, OP, 3)
    assert (told.lines, told.moved, told.same) == ((), ("facts",), ("system prompt", "task"))
    table = described(told)
    assert table.empty.text == "Both were sent the same lines, in another order."
    assert [note.text for note in table.notes][1:] == [
        "The same: system prompt, task.",
        "The same lines, in another order: facts.",
    ]

    turned = chat('<facts>\nA = 1\nB = 2\n</facts>\n<task>\n{"b":2,"a":1}\n</task>')
    assert difference(old, turned, OP, 3).moved == ("task",)
    both = chat('<facts>\nB = 2\nA = 3\n</facts>\n<task>\n{"a":1,"b":2}\n</task>')
    told = difference(old, both, OP, 3)
    assert (len(told.lines), told.moved) == (2, ())


def test_a_flood_of_differences_is_whole_and_a_page_shows_a_part_and_counts_the_others() -> None:
    new = chat("<facts>\n" + "\n".join(f"F{n} = {'x' * 5_000}" for n in range(1_000)))
    told = difference(chat(""), new, OP, 0)
    assert len(told.lines) == 1_000 + 1
    assert max(len(line.text) for line in told.lines) <= 300
    assert len(described(told).rows) == 1_001
    table = described(told, ROWS_MAX)
    assert len(table.rows) == ROWS_MAX
    assert table.notes[-1].text == (
        "501 more lines differ; `deskbus operations show 00000000 --full` prints all."
    )


def test_two_long_lines_show_where_they_part() -> None:
    old, new = chat("x" * 1_000 + " was 1"), chat("x" * 1_000 + " is 2")
    come, gone = difference(old, new, OP, 0).lines
    assert (come.sign, gone.sign) == ("+", "-")
    assert come.text.endswith("is 2")
    assert gone.text.endswith("was 1")


def with_result(sentence: str, *texts: str) -> Chat:
    """A call that was sent these results of one tool."""
    results = [Spoken(sentence, text) for text in texts]
    return Chat(before=(), asked=[Turn(ChatRole.TOOL, calls=results)], reply=())


def test_results_in_the_same_words_with_other_contents_differ_field_by_field() -> None:
    old = with_result("news(A) = 2 headlines", '{"headlines":[{"id":"1","title":"up"}]}')
    new = with_result("news(A) = 2 headlines", '{"headlines":[{"id":"1","title":"down"}]}')
    assert changes(old, new) == [
        '- tool results: news(A): headlines[1].title = "up"',
        '+ tool results: news(A): headlines[1].title = "down"',
    ]
    assert changes(old, old) == []
    assert "+ tool results: news(A) = 2 headlines" in changes(chat(), old)
    more = with_result("news(A) = 2 headlines", "same", "and one more")
    assert changes(with_result("news(A) = 2 headlines", "same"), more) == [
        "+ tool results: news(A): and one more"
    ]


async def test_a_repair_differs_by_what_it_was_told_and_shows_the_texts_in_their_order() -> None:
    desk = await recorded(asks(A), ModelReply(text="done"), BAD, GOOD)
    *_, answer, repair = chats(desk)
    assert [text.role for text in sent_texts(answer)] == ["system", "schema", "user", "assistant"]
    assert sent_texts(answer)[-1].text == BAD.text
    told = difference(answer, repair, OP, 4)
    assert {line.sign for line in told.lines} == {"+"}
    assert {line.part for line in told.lines} == {"message", "errors"}
    assert set(told.same) == {"system prompt", "answer schema", "task", "evidence"}


async def test_a_round_of_tools_is_shown_with_the_results_as_they_were_sent() -> None:
    desk = await recorded(asks(A), ModelReply(text="done"), GOOD)
    first, second = chats(desk)[:2]
    (result,) = [text for text in sent_texts(second) if text.role == "tool"]
    sent = desk.provider.requests[1].messages[-1].results[0]  # type: ignore[union-attr]
    assert (result.text, result.about) == (sent.content, "price(A)")
    assert changes(first, second) == ["+ tool results: price(A)"]
