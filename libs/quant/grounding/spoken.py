# ruff: noqa: PLR0911  (one way to be named a line)
"""One sentence as it is read: its words, whose each figure is, and which day it is of."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, wraps
from itertools import pairwise
from typing import Any, TypeVar

from libs.quant.grounding.facts import PRICES, VOLUME, Fact, Facts
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.words import Mention

P = TypeVar("P", Figure, Mention, "Named")

NEAR_CHARS = 25
HISTORIC = frozenset({*PRICES, VOLUME})

SENTENCE_CHARS_MAX = 500
"""A longer sentence is read in pieces: what stands further apart is not of one figure."""

_ENDS = re.compile(
    r"(?<=[.!?])(?<!\best\.)(?<!\bi\.e\.)(?<!\be\.g\.)(?<!\bvs\.)(?<!\bcons\.)(?<!\bavg\.)(?<!\bapprox\.)(?<!\bop\.)[\"”)]?\s+(?=[A-Z(\"“€$£\d])|\n+|\s\|\s"
)

_SAID_OF = re.compile(
    r"^[\s(]*(?:for|at|of|by|in)?\s?\(?$|^,\s(?:which|that)\s(?:is|was|of)\s$|"
    r"^\s(?:that|which)\s(?:[a-z]+\s){1,3}(?:for|of|in)\s$|"
    r"^\s[a-z]+(?:\s[a-z]+)?\sby\s$|^\s(?:in|at|for)\sthe\s[a-z -]+\s\($",
    re.IGNORECASE,
)
"""Between a figure and the ticker behind that it is of: "4.80%, which is MSFT"."""


RIVALS = re.compile(r"^\s(?:versus|vs\.?|against|compared with)\s$", re.IGNORECASE)

_JOINED = re.compile(
    r"^(?:\s?\([^()]{1,20}\))?(?:\s?,\s?(?:and\s)?|\s?/\s?|\s(?:and|or|versus|vs\.?|against)\s)(?:the\s|its\s|their\s)?$",
    re.IGNORECASE,
)

_OF_THEM = re.compile(r"\bof (?:them|these|those)\b", re.IGNORECASE)
_OWNS = re.compile(r"^(?:'s)?\s$")
_RIVAL = re.compile(
    r"\b(?:than|as|besides|alongside|except|against|versus|vs\.?|to|of|with|like|unlike|beats|over|above|below)\s(?:an?\s|the\s|what\s)?$",
    re.IGNORECASE,
)
_COMPARED_TO = re.compile(
    r"\b(?:than|as|versus|vs\.?|against|unlike|like|(?:that|those) of|times)\s$", re.IGNORECASE
)
"""Before a ticker that the one spoken of is held against: "twice as volatile as IBM"."""
_OPENED = re.compile(r"\b(from|between)\s$", re.IGNORECASE)
_TO_END = {"from": (" to ", " up to ", " down to "), "between": (" and ",)}
"""What joins the ends of a range, by the word that opens it."""
_LEFT_OUT = re.compile(
    r"\b(?:excluding|except(?: for)?|without|(?:aside|apart) from)\s$", re.IGNORECASE
)
"""Before a ticker that the others are spoken of without."""
_ORDER = re.compile(r"\border (?:for|of|over) $", re.IGNORECASE)
_LATTER = re.compile(r"\bthe (?P<which>latter|former)\b", re.IGNORECASE)
_IT = re.compile(r"\bits?\b", re.IGNORECASE)
_IT_STARTS = re.compile(r"^its?\b", re.IGNORECASE)
_GOES_ON = re.compile(
    r"^(?:[\s,:()/|]|'s\b|\b(?:and|for|of|in|to|with|only|just|but|against|about)\b)+$",
    re.IGNORECASE,
)
"""Between two figures of one list: names, commas and small words."""


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text start and end."""
    cuts = [0]
    for match in _ENDS.finditer(text):
        # The number of a list item is no sentence.
        if not re.fullmatch(r"\s*\d{1,2}\.", text[cuts[-1] : match.start()]):
            cuts.append(match.end())
    spans = zip(cuts, [*cuts[1:], len(text)], strict=True)
    return [
        (place, min(place + SENTENCE_CHARS_MAX, end))
        for start, end in spans
        for place in range(start, end, SENTENCE_CHARS_MAX)
    ]


@dataclass(frozen=True, slots=True)
class Named:
    """A ticker where a sentence names it."""

    start: int
    end: int
    ticker: str


A = TypeVar("A")
Asked = Callable[[Any, Figure], A]


def once(ask: Asked[A]) -> Asked[A]:
    """What is asked of the same figure again is answered from memory."""

    @wraps(ask)
    def answer(said: "Spoken", figure: Figure) -> A:
        key = (ask.__name__, figure.start)
        if key not in said.answers:
            said.answers[key] = ask(said, figure)
        return said.answers[key]  # type: ignore[no-any-return]

    return answer


@dataclass
class Spoken:
    """A sentence with what was read from it. Places count from its own start.

    `topics` are the quantities that the whole text names, `so_far` the tickers named up to here.
    """

    text: str
    figures: Sequence[Figure]
    facts: Facts
    about: str | None
    named: Sequence[Named]
    mentions: Sequence[Mention]
    traced: dict[Figure, Fact] = field(default_factory=dict)
    made_of: dict[Figure, tuple[Fact, ...]] = field(default_factory=dict)
    failed: list[Figure] = field(default_factory=list)
    subject: str | None = None
    carried: Sequence[Mention] = ()
    recalled: Sequence[Fact] = ()
    named_before: Sequence[Named] = ()
    topics: frozenset[str] = frozenset()
    so_far: frozenset[str] = frozenset()
    told_day: date | None = None
    answers: dict[tuple[str, int], Any] = field(default_factory=dict)

    def before(self, figure: Figure, chars: int = 60) -> str:
        """The words before a figure."""
        return self.text[max(0, figure.start - chars) : figure.start]

    def after(self, figure: Figure, chars: int = 60) -> str:
        """The words behind a figure."""
        return self.text[figure.end : figure.end + chars]

    def between(self, one: Figure, two: Figure) -> str:
        """The words between two figures."""
        return self.text[min(one.end, two.end) : max(one.start, two.start)]

    def around(self, figure: Figure) -> str:
        """The words about a figure, as far as they may say which one of several it is."""
        return self.before(figure, 80) + figure.text + self.after(figure, 45)

    def near_words(self, figure: Figure) -> str:
        """The words about a figure up to the figures beside it."""
        others = [each for each in self.figures if each.unit not in {"date", "count"}]
        start = max((each.end for each in others if each.end <= figure.start), default=0)
        end = min(
            (each.start for each in others if each.start >= figure.end), default=len(self.text)
        )
        return self.text[start : figure.start] + " " + self.text[figure.end : end]

    def clause(self, figure: Figure) -> str:
        """The words around a figure up to the next commas."""
        left = re.split(r"[,;:(]\s", self.text[: figure.start])[-1]
        return left + re.split(r"[,;:)]\s", self.text[figure.end :])[0]

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Whether the sentence has words of this kind."""
        key = (pattern.pattern, -1)
        if key not in self.answers:
            self.answers[key] = bool(pattern.search(self.text))
        return bool(self.answers[key])

    # --- ticker ---

    @once
    def tickers(self, figure: Figure) -> tuple[str, ...]:
        """Whose figure this is; empty where the text speaks of no one ticker."""
        listed = self._pairwise(figure)
        if listed:
            return (listed,)
        for name in self.named:
            if _OWNS.match(self.text[name.end : figure.start]) and name.end <= figure.start:
                return (name.ticker,)
        behind = self._said_behind(figure)
        if behind is not None:
            return (behind.ticker,)
        taken = {self._said_behind(other) for other in self.figures if other is not figure}
        free = [
            name
            for name in self.named
            if (name not in taken or self.about is None)
            and not _LEFT_OUT.search(self.text[: name.start])
        ]
        of_all = self.about is None and self.named and not free
        if of_all or self.is_end_of_all(figure):
            return ()
        if meant := self._pronoun(figure):
            return (meant,)
        ahead = [name for name in free if name.end <= figure.start]
        if ahead:
            # Behind a comparison ("dearer than Foxtrot; volume 5 million") the topic may be back.
            left = re.search(r"[;,(]", self.text[ahead[-1].end : figure.start])
            topic = self.about if left and _RIVAL.search(self.text[: ahead[-1].start]) else None
            return tuple(dict.fromkeys((ahead[-1].ticker, *((topic,) if topic else ()))))
        if self.about is not None:
            return (self.about,)
        following = [name for name in free if name.start >= figure.end]
        if following and self.subject and self._are_rivals:
            return (self.subject,)
        alone = len({name.ticker for name in self.named}) == 1
        if following and (alone or self._near(figure, following[0].start)):
            return (following[0].ticker,)
        if not self.named and _OF_THEM.search(self.text):
            return tuple(dict.fromkeys(each.ticker for each in self.named_before))
        if not self.named and _ORDER.search(self.before(figure, 20)):
            return tuple(self.facts.having("order_quantity"))
        return (self.subject,) if self.subject else ()

    def _pronoun(self, figure: Figure) -> str | None:
        """The ticker that "the latter" or a returning "it" stands for, where it is last named."""
        names = [name for name in self.named if name.end <= figure.start]
        start = names[-1].end if names else 0
        for match in reversed(list(_LATTER.finditer(self.text, start, figure.start))):
            pair = list(dict.fromkeys(each.ticker for each in (*self.named_before, *names)))[-2:]
            if len(pair) > 1:
                return pair[match["which"].lower() == "latter"]
        back = self.about is None and names and _IT_STARTS.match(self.text)
        return self.subject if back and _IT.search(self.text, start, figure.start) else None

    def is_end_of_all(self, figure: Figure) -> bool:
        """Whether this is an end of "P/E from 14.8 to 28.4", said of no ticker: of all of them.

        What has a history (a price, a volume) ranges over its sessions, of the ticker before it.
        """
        if self.about is not None:
            return False
        for one, two in pairwise(self.figures):
            if figure in {one, two} and one.unit == two.unit in {"percent", "number", "times"}:
                between = self.text[one.end : two.start]
                opened = _OPENED.search(self.text[: one.start])
                spoken = [each for each in self.mentions if each.end <= one.start][-1:]
                owned = [n for n in self.named if spoken and spoken[0].end <= n.start < one.start]
                mine = [n for n in self.named if spoken and n.end < spoken[0].start]
                beside = mine and not re.search(r"[,;]", self.text[mine[-1].end : one.start])
                if opened and between in _TO_END[opened[1].lower()] and spoken:
                    return not (owned or beside or {*spoken[0].concepts} & HISTORIC)
        return False

    @cached_property
    def everyone(self) -> tuple[str, ...]:
        """The tickers that the sentence may speak of."""
        names = [each.ticker for each in self.named]
        before = [] if names else [each.ticker for each in self.named_before]
        subject = self.subject if not names or self._are_rivals else None
        known = [each for each in (self.about, subject) if each]
        return tuple(dict.fromkeys((*names, *known, *before)))

    @cached_property
    def _are_rivals(self) -> bool:
        """Whether the tickers are only named to be compared with: "twice as volatile as IBM"."""
        return all(_COMPARED_TO.search(self.text[: each.start]) for each in self.named)

    def is_owned(self, figure: Figure) -> bool:
        """Whether a ticker's name stands right beside a figure."""
        ahead = any(_OWNS.match(self.text[each.end : figure.start]) for each in self.named)
        return ahead or self._said_behind(figure) is not None

    def named_ahead(self, figure: Figure) -> bool:
        """Whether the sentence has named a ticker before a figure, or does so right behind it."""
        return any(each.end <= figure.start for each in self.named) or self.is_owned(figure)

    def _said_behind(self, figure: Figure) -> Named | None:
        for name in self.named:
            if name.start >= figure.end and _SAID_OF.match(self.text[figure.end : name.start]):
                return name
        return None

    def _pairwise(self, figure: Figure) -> str | None:
        """`A and B closed at 1 and 2 respectively`: the figure's place gives its ticker."""
        group = self._row_of_figures(figure)
        if len(group) < 2:
            return None
        place = group.index(figure)
        rows = rows_of(self.named, self.text)
        fitting = [
            row
            for row in rows
            if 2 <= len(row) <= len(group) and place < len(row) and row[-1].end <= group[0].start
        ]
        if fitting:
            return fitting[-1][place].ticker
        behind = [
            row
            for row in rows
            if 1 < len(row) <= len(group)
            and place >= len(group) - len(row)
            and _SAID_OF.match(self.text[group[-1].end : row[0].start])
        ]
        if behind:
            return behind[0][place - len(group)].ticker
        before = list(dict.fromkeys(each.ticker for each in self.named_before))
        if not self.named and len(group) == len(before) > 2:
            return before[place]
        start = group[0].start
        ahead = list(dict.fromkeys(each.ticker for each in self.named if each.end <= start))
        between = self.text[group[0].end : group[1].start]
        return ahead[place] if RIVALS.match(between) and len(ahead) == len(group) else None

    @once
    def _row_of_figures(self, figure: Figure) -> list[Figure]:
        return next((row for row in rows_of(self.figures, self.text) if figure in row), [figure])

    @once
    def listed_after(self, figure: Figure) -> Figure | None:
        """The figure before, where this one only goes on with its list: "x for A, y for B"."""
        last = [each for each in self.figures if each.end <= figure.start][-1:]
        if not last or last[0].unit != figure.unit:
            return None
        return last[0] if _GOES_ON.match(self.without_names(last[0].end, figure.start)) else None

    def without_names(self, start: int, end: int) -> str:
        """A piece of the text without the names of tickers."""
        for name in reversed(self.named):
            if start <= name.start and name.end <= end:
                return f"{self.without_names(start, name.start)} {self.text[name.end : end]}"
        return self.text[start:end]

    def _near(self, figure: Figure, start: int) -> bool:
        between = self.text[figure.end : start]
        return (
            len(between) <= NEAR_CHARS
            and not re.search(r"[,:;]", between)
            and not self._any_figure(figure.end, start)
        )

    def _any_figure(self, start: int, end: int) -> bool:
        return any(start <= other.start < end for other in self.figures)


def rows_of(items: Sequence[P], text: str) -> list[list[P]]:
    """Items that stand joined by commas and "and", as rows."""
    rows: list[list[P]] = []
    for item in items:
        if rows and _JOINED.match(text[rows[-1][-1].end : item.start]):
            rows[-1].append(item)
        else:
            rows.append([item])
    return rows
