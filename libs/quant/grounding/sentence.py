# ruff: noqa: RUF001, PLR0911  (one way to be named a line)
"""One sentence: what each of its figures speaks of (quantity, ticker, time and direction)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar

from libs.quant.grounding import words
from libs.quant.grounding.facts import CLOSE, Fact, Facts, unit_of
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.words import Mention

P = TypeVar("P", Figure, Mention, "Named")
NEAR_CHARS = 25
SENTENCE_CHARS_MAX = 500
"""A longer sentence is read in pieces: what stands further apart is not of one figure."""
_ENDS = re.compile(r"(?<=[.!?])[\"”)]?\s+(?=[A-Z(\"“€$£\d])|\n+|\s\|\s")
# Between a figure and the words right behind that name it: "29.63 is its 20-day average".
_RIGHT_BEHIND = re.compile(
    r"^[\s(,]*(?:(?:is|was|are|were|in|of|for|as)\s)?(?:(?:its|the|a|an|last|yearly|net|open|our)\s)*$",
    re.IGNORECASE,
)
_SAID_OF = re.compile(r"^[\s(]*(?:for|at|of|by|in)?\s?\(?$", re.IGNORECASE)
_RANGE = re.compile(r"^\s(?:and|to)\s$", re.IGNORECASE)
_JOINED = re.compile(
    r"^(?:\s?,\s?(?:and\s)?|\s(?:and|or)\s)(?:the\s|its\s|their\s)?$", re.IGNORECASE
)


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text start and end."""
    cuts = [0]
    for match in _ENDS.finditer(text):
        # The number of a list item is no sentence.
        if not re.search(r"(?:^|\s)\d{1,2}\.$", text[cuts[-1] : match.start()][-4:]):
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


@dataclass
class Sentence:
    """A sentence with what was read from it. Places count from its own start."""

    text: str
    figures: Sequence[Figure]
    facts: Facts
    about: str | None
    named: Sequence[Named]
    mentions: Sequence[Mention]
    traced: dict[Figure, Fact] = field(default_factory=dict)
    subject: str | None = None
    carried: Sequence[Mention] = ()

    def before(self, figure: Figure, chars: int = 60) -> str:
        """The words before a figure."""
        return self.text[max(0, figure.start - chars) : figure.start]

    def after(self, figure: Figure, chars: int = 60) -> str:
        """The words behind a figure."""
        return self.text[figure.end : figure.end + chars]

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Whether the sentence has words of this kind."""
        return bool(pattern.search(self.text))

    # --- ticker ---

    def tickers(self, figure: Figure) -> tuple[str, ...]:
        """Whose figure this is; empty where the text speaks of no one ticker."""
        listed = self._pairwise(figure)
        if listed:
            return (listed,)
        behind = self._said_behind(figure)
        if behind is not None:
            return (behind.ticker,)
        taken = {self._said_behind(other) for other in self.figures if other is not figure}
        free = [name for name in self.named if name not in taken or self.about is None]
        ahead = [name for name in free if name.end <= figure.start]
        if ahead:
            return (ahead[-1].ticker,)
        if self.about is not None:
            return (self.about,)
        following = [name for name in free if name.start >= figure.end]
        if following and len({name.ticker for name in self.named}) == 1:
            return (following[0].ticker,)
        if following and self._near(figure, following[0].start):
            return (following[0].ticker,)
        return (self.subject,) if self.subject else ()

    def others(self, figure: Figure) -> tuple[str, ...]:
        """Tickers that the sentence names beside the figure's own."""
        own = self.tickers(figure)
        return tuple(dict.fromkeys(each.ticker for each in self.named if each.ticker not in own))

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
        rows = _rows(self.named, self.text)
        fitting = [row for row in rows if len(row) == len(group) and row[-1].end <= group[0].start]
        return fitting[-1][group.index(figure)].ticker if fitting else None

    def _row_of_figures(self, figure: Figure) -> list[Figure]:
        return next((row for row in _rows(self.figures, self.text) if figure in row), [figure])

    # --- quantity ---

    def linked(self, figure: Figure) -> tuple[str, ...]:
        """The quantities that the words next to a figure name; empty where none do."""
        listed = self._listed(figure)
        if listed:
            return listed
        fitting = [each for each in self.mentions if fits(figure, each)]
        behind = self._behind(figure, fitting)
        if behind and self._names_what_is_before(figure, behind[0]):
            return behind[0].concepts
        ahead = [each for each in fitting if each.end <= figure.start]
        if ahead and self._carries(ahead[-1], figure):
            touching = [each.concepts for each in ahead[:-1] if ahead[-1].start - each.end <= 1]
            return tuple(
                dict.fromkeys((*ahead[-1].concepts, *(c for each in touching[-1:] for c in each)))
            )
        if behind and self._near(figure, behind[0].start):
            return (*behind[0].concepts, *((CLOSE,) if figure.unit == "money" else ()))
        following = next((each for each in self.figures if each.start >= figure.end), None)
        if (
            following
            and following.unit == figure.unit
            and _RANGE.match(self.text[figure.end : following.start])
        ):
            return self.linked(following)
        return ()

    def _names_what_is_before(self, figure: Figure, mention: Mention) -> bool:
        """`$25.52, the low of June 6`, but not the low in `$34.63, the low at $26.43`."""
        gap = self.text[figure.end : mention.start]
        for name in self.named:
            gap = gap.replace(name.ticker, "")
        own = re.match(r"^\s*(?:at|of|is|was|:)?\s*[-+(−$€£\d]", self.text[mention.end :])
        article = re.search(r",\s(?:the|its|a|an)\s", gap)
        return bool(_RIGHT_BEHIND.match(gap)) and not ("," in gap and (own or not article))

    def _behind(self, figure: Figure, fitting: Sequence[Mention]) -> list[Mention]:
        """Mentions behind a figure; a period names no quantity that has no percent."""
        return [
            each
            for each in fitting
            if each.start >= figure.start
            and not (figure.unit == "number" and each.concepts[0].endswith("_pct"))
            and not self._any_figure(figure.end, each.start)
        ]

    def _carries(self, mention: Mention, figure: Figure) -> bool:
        """Whether a name still speaks at a figure; the writer's own words end with their clause."""
        if mention.concepts != (words.OWN,):
            return True
        between = self.text[mention.end : figure.start]
        left = re.search(r"[,:;]", between)
        spoken = self._any_figure(mention.end, figure.start) or re.search(r"\w+\s+\w+", between)
        return not (left and spoken)

    def _near(self, figure: Figure, start: int) -> bool:
        between = self.text[figure.end : start]
        return (
            len(between) <= NEAR_CHARS
            and not re.search(r"[,:;]", between)
            and not self._any_figure(figure.end, start)
        )

    def _any_figure(self, start: int, end: int) -> bool:
        return any(start <= other.start < end for other in self.figures)

    def is_told(self, figure: Figure) -> bool:
        """Whether a figure is given as a known quantity: "the market value of $38.8 billion"."""
        ahead = [each for each in self.mentions if each.end <= figure.start and fits(figure, each)]
        if not ahead or not re.match(
            r"^\W*(?:of|at|is|was|:)?\W*$", self.text[ahead[-1].end : figure.start]
        ):
            return False
        owners = (*self.tickers(figure), None)
        return any(self.facts.now(owner, each) for owner in owners for each in ahead[-1].concepts)

    def spoken_of(self, figure: Figure) -> tuple[str, ...]:
        """The nearest quantity before a figure, whatever its unit."""
        ahead = [each for each in self.mentions if each.end <= figure.start]
        return ahead[-1].concepts if ahead else ()

    def _listed(self, figure: Figure) -> tuple[str, ...]:
        """`EMA12 and EMA26 stand at 1 and 2`: the figure's place gives its quantity."""
        group = self._row_of_figures(figure)
        if len(group) < 2:
            return ()
        rows = [row for row in _rows(self.mentions, self.text) if len(row) == len(group)]
        fitting = [row for row in rows if row[-1].end <= group[0].start]
        if fitting:
            return fitting[-1][group.index(figure)].concepts
        if re.search(r"\bboth\b", self.text[: group[0].start]) and len(self.carried) == len(group):
            return self.carried[group.index(figure)].concepts
        return ()

    # --- direction and time ---

    def direction(self, figure: Figure) -> int:
        """-1 for words that point down, 1 for up, 0 where there are none."""
        text = words.OVER_TIME.sub(lambda match: " " * len(match.group()), self.text)
        right = re.split(r"[,;:]", text[figure.end : figure.end + 40])[0]
        near = re.match(
            r"^\W*(?:or\s[$€£\d.%]+\s|a share\s|per share\s|percentage points\s|points\s|is\s)*",
            right,
        )
        first = right[near.end() if near else 0 :]
        for sign, pattern in ((-1, words.DOWN), (1, words.UP)):
            if pattern.match(first):
                return sign
        left = re.split(r";", text[: figure.start])[-1]
        last = max(
            ((match.start(), sign) for sign, pattern in ((-1, words.DOWN), (1, words.UP))
             for match in pattern.finditer(left)),
            default=None,
        )  # fmt: skip
        if last is not None:
            return last[1]
        for sign, pattern in ((-1, words.DOWN), (1, words.UP)):
            if pattern.search(right):
                return sign
        return 0

    def session(self, figure: Figure) -> date | None:
        """The session that is named with a figure; None where it is as_of."""
        days = [each for each in self.figures if each.unit == "date"]
        behind = [each for each in days if each.start >= figure.end]
        if behind and not self._figure_between(figure.end, behind[0].start, figure):
            return self.resolve(behind[0])
        ahead = [each for each in days if each.end <= figure.start]
        if ahead and not self._figure_between(0, figure.start, figure):
            return self.resolve(ahead[-1])
        return None

    def _figure_between(self, start: int, end: int, figure: Figure) -> bool:
        return any(
            start <= other.start < end and other.unit == figure.unit for other in self.figures
        )

    def resolve(self, figure: Figure) -> date | None:
        """The day a date means, in as_of's year where it names none."""
        as_of = self.facts.as_of
        if as_of is None and figure.year is None:
            return None
        years = [figure.year] if figure.year else [as_of.year, as_of.year - 1] if as_of else []
        for year in years:
            try:
                day = date(year or 0, figure.month, figure.day)
            except ValueError:
                continue
            if as_of is None or day <= as_of or figure.year:
                return day
        return None


def fits(figure: Figure, mention: Mention) -> bool:
    """Whether a figure in this unit may be the quantity that a mention names."""
    return any(unit_fits(figure, concept) for concept in mention.concepts)


def unit_fits(figure: Figure, concept: str) -> bool:
    """Whether a figure in this unit may be this quantity."""
    if concept in {words.OTHER, words.OWN}:
        return concept == words.OTHER or figure.unit not in {"money", "times"}
    unit = unit_of(concept)
    match figure.unit:
        case "percent":
            return unit == "percent" or concept == "debt_to_equity"
        case "money":
            return unit == "money"
        case "number" | "count":
            return True
        case "times":
            return concept == "pe_ratio"
        case "ratio":
            return concept == "debt_to_equity"
        case _:
            return False


def _rows(items: Sequence[P], text: str) -> list[list[P]]:
    """Items that stand joined by commas and "and", as rows."""
    rows: list[list[P]] = []
    for item in items:
        if rows and _JOINED.match(text[rows[-1][-1].end : item.start]):
            rows[-1].append(item)
        else:
            rows.append([item])
    return rows


def about_price(concepts: Sequence[str]) -> bool:
    """Whether words speak of a share's price, whose moves need no further name."""
    return not concepts or bool({CLOSE, "open", "high", "low", "volume"} & set(concepts))
