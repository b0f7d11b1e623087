# ruff: noqa: RUF001, PLR0911  (dashes are what it reads; one unit a line)
"""What each figure of a sentence speaks of: its quantity, and the direction that words give it."""

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from libs.quant.grounding import words
from libs.quant.grounding.averaged import Averaged
from libs.quant.grounding.facts import CLOSE, LEVELS, PRICES, Fact, unit_of
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.spoken import NEAR_CHARS, RIVALS, once, rows_of
from libs.quant.grounding.units import SHARES, fits, kin
from libs.quant.grounding.words import Mention

LEADS_CHARS = 40

# Between a figure and the words right behind that name it: "29.63 is its 20-day average".
_RIGHT_BEHIND = re.compile(
    r"^[\s(,]*(?:(?:above|below|overhead),\s)?(?:which\s)?(?:(?:is|was|are|were|in|of|for|as)\s)?(?:(?:its|the|an?|our)\s)*"
    r"(?:(?!and|but|or|while|al?though|as|if|since|when|where|yet|with|above|below|over|under|from|to|by|than|on|at|"
    r"against|versus|vs|who|which|that|what|where|ahead|behind|short|off|out|beyond|outside|inside|past|between|within|before|after|until)[a-z-]+\s){0,2}$",
    re.IGNORECASE,
)

# Between words that name a quantity and its figure: "RSI (14) now stands at about 55".
_LEADS_TO = re.compile(
    r"^(?:[\s:=(~]|\(\d+(?:,\s?\d+)*\)|\b(?:of|at|in|as|to|an?|the|"
    r"per|for|is|was|already|still|now|only|just|currently|about|roughly|around)\b)*$",
    re.IGNORECASE,
)

_BROKEN = re.compile(
    r"[,;:()]|\b(?:and|but|or|while|with|by|than|when|after|above|below|over|under|of|on|in|for|per|has|at)\b",
    re.IGNORECASE,
)
_UP_TO = re.compile(r"\bto\s(?:about\s)?$", re.IGNORECASE)
_OPENED = re.compile(r"^\s?\($|^,?\s(?:or|i\.e\.,?|=)\s(?:about\s)?$", re.IGNORECASE)
_ROW_BEHIND = re.compile(r"^\s(?:(?:over|in|for|at|of|as|the)\s)*$", re.IGNORECASE)
_BEYOND_SIGN = re.compile(r"^\s?[<>]=?\s?$")
PRICED = frozenset({*PRICES, *LEVELS, "average_cost"})
"""What a price is held against."""
TOTALS = frozenset({"market_cap", "position_value", "equity", "cash", "net_income"})
"""Amounts that are never given a share."""
_TO_THE = re.compile(r"\b(?:to|from) (?:the|its) $", re.IGNORECASE)
"""Before a name that a distance is measured to: "To the upper band: $4.93"."""
_GOES_ON = re.compile(r"^\s(?:is|are|was|were|has|have|had|will|would)\b", re.IGNORECASE)
"""Behind a name that starts a clause of its own."""
_APPOSED = re.compile(r"^,\s(?:the|its|an?|our)\s$", re.IGNORECASE)
_ONE_NAME = re.compile(
    r"^\s(?:(?:is|was|are|were|of|over|in|for|the|its|an?|past|last|measured)\s?)+$", re.IGNORECASE
)
"""Between two names of one quantity."""
_IS_SAID = re.compile(r"^\s(?:is|are|was|were|would|will|comes?|came)\b", re.IGNORECASE)
_PART = re.compile(r"^\s(?:out )?of\s[$€£\d]")
_SHARE_OF = re.compile(r"(?:%|percent|\bout)\sof\s$")
"""Before an amount that something is a share of."""
_IS = re.compile(r"^\s(?:(?:is|are|was|were)\s|#+\s)$")


class Sentence(Averaged):
    """A sentence of which one can ask what a figure is."""

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        """The quantities that the sentence names, or the one before it."""
        every = (*self.mentions, *self.carried)
        return tuple(dict.fromkeys(name for mention in every for name in mention.concepts))

    def names(self, concept: str) -> bool:
        """Whether the sentence names a quantity, or the one before it does."""
        return concept in self.concepts

    @cached_property
    def numbers(self) -> frozenset[int]:
        """Small whole numbers of the sentence: "the last five closes"."""
        small = (each.value for each in self.figures if each.unit in {"count", "number", "days"})
        return frozenset(int(value) for value in small if 1 < value < 300 and value == int(value))

    @once
    def tight(self, figure: Figure) -> tuple[str, ...]:
        """The quantity that the words beside a figure say it is; empty where none do."""
        listed = self._listed(figure)
        if listed:
            return listed
        fitting = [each for each in self.mentions if fits(figure, each)]
        if self.after(figure, 7) == " shares" or self._counts_shares(figure):
            fitting = [each for each in fitting if SHARES & {*each.concepts, words.OTHER}]
        if words.PER_SHARE.match(self.after(figure, 10).lstrip()):
            fitting = [each for each in fitting if not TOTALS & {*each.concepts}]
        if tagged := self._tagged(figure, fitting):
            return tagged
        ahead = [each for each in fitting if each.end <= figure.start]
        if (
            len(ahead) > 1
            and _ONE_NAME.match(self.text[ahead[-2].end : ahead[-1].start])
            and not self._any_figure(ahead[-1].end, figure.start)
        ):
            # "volatility over three months is 32%", "the account is worth $5": either may name it.
            both = tuple(name for name in ahead[-1].concepts if name in ahead[-2].concepts)
            return both or (*ahead[-2].concepts, *ahead[-1].concepts)
        if ahead and (pair := self._paired(figure, ahead[-1])):
            return pair
        if self._ends_move(figure, ahead):
            return (CLOSE,)
        behind = self._behind(figure, fitting)
        if behind and self.text[figure.end : behind[0].start] in {" of ", " in "}:
            # "1.66x sales: €3.15bn of market cap"
            return self._earnings(figure, behind[0].concepts)
        leads = bool(ahead) and self._leads_to(ahead[-1], figure)
        if leads and ahead[-1].concepts != (words.OTHER,):
            return self._earnings(figure, ahead[-1].concepts)
        if behind and self._names_what_is_before(figure, behind[0]):
            return self._earnings(figure, behind[0].concepts)
        if leads:
            return (words.OTHER,)
        head = self.listed_after(figure)
        if head is None or self._mention_between(head, figure):
            return ()
        apart = self.text[head.end : figure.start]
        # "MACD 2.45/2.05/0.40": the line, its signal, their difference.
        return kin(self.tight(head)) if apart.strip() == "/" else self.tight(head)

    def _counts_shares(self, figure: Figure) -> bool:
        """Whether a whole number stands right before a ticker: "20 GOOG, to buy"."""
        whole = figure.unit == "number" and figure.step >= 1 and not figure.currency
        return whole and any(each.start == figure.end + 1 for each in self.named)

    def _leads_to(self, ahead: Mention, figure: Figure) -> bool:
        """Whether a name goes straight to a figure: nothing between them is said of another."""
        to = _TO_THE.search(self.text[: ahead.start]) and self.text[ahead.end :][:1] == ":"
        said_of = words.BEHIND.search(self.text[: ahead.start])
        left = re.search(r"\bfrom\s(?:\S+'s\s)?$", self.text[: ahead.start], re.IGNORECASE)
        straight = _LEADS_TO.match(self.text[ahead.end : figure.start])
        if (
            to
            or (said_of and _IS_SAID.match(self.text[ahead.end :]))
            or (left and not straight)
            or (figure.unit == "money" and _PART.match(self.after(figure, 12)))
        ):
            # "a stop under the close would be $80": what is measured from is not what is said.
            return False
        gap, start = "", ahead.end
        for day in (each for each in self.figures if each.unit == "date"):
            if start <= day.start and day.end <= figure.start:
                gap, start = gap + self.without_names(start, day.start), day.end
        gap += self.without_names(start, figure.start)
        # "The 200-day average, $444, is out of reach": said between commas, it is the same.
        if _LEADS_TO.match(gap) or (gap == ", " and self.after(figure, 1) == ","):
            return True
        apart = _BROKEN.search(gap) or self._any_figure(ahead.end, figure.start)
        measured = self.is_compared(figure) or self.asks_mean(figure)
        named = ahead.concepts != (words.OTHER,) and len(gap) < LEADS_CHARS
        return named and not apart and not measured

    def _tagged(self, figure: Figure, fitting: Sequence[Mention]) -> tuple[str, ...]:
        """The name that stands alone in parentheses behind a figure: "88.93 (50-day)"."""
        for each in fitting:
            gap, rest = self.text[figure.end : each.start], self.text[each.end : each.end + 1]
            if each.start >= figure.end and gap in {" (", "("} and rest == ")":
                return each.concepts
        return ()

    def is_named_behind(self, figure: Figure) -> bool:
        """Whether a level's name stands aside behind it: "below €123.19 (upper band)"."""
        if self._is_led(figure):
            return False
        fitting = [each for each in self.mentions if fits(figure, each)]
        behind = self._behind(figure, fitting)[:1]
        aside = behind and _APPOSED.match(self.text[figure.end : behind[0].start])
        return bool(self._tagged(figure, fitting) or aside)

    def _is_led(self, figure: Figure) -> bool:
        """Whether a name that is no price's leads to a figure: "a P/E north of 75, its sales"."""
        return bool({*self.near(figure)} - {*PRICES})

    def _ends_move(self, figure: Figure, ahead: Sequence[Mention]) -> bool:
        """Whether a move leads to a level: "down 1.8% on the day to 28.21"."""
        return (
            figure.unit == "number"
            and figure.step < 1
            and bool(ahead)
            and self.text[ahead[-1].end : figure.start] in {" to ", " at "}
            and unit_of(ahead[-1].concepts[0]) == "percent"
            and self._any_figure(ahead[-1].start - NEAR_CHARS, ahead[-1].start)
        )

    def _paired(self, figure: Figure, ahead: Mention) -> tuple[str, ...]:
        """`the upper band (64.03 against 63.97)`: one of the two is the price."""
        for one, two in pairwise(self.figures):
            if figure in {one, two} and one.unit == two.unit and ahead.end <= one.start:
                between = self.text[one.end : two.start]
                joined = RIVALS.match(between) or _BEYOND_SIGN.match(between)
                leads = _LEADS_TO.match(self.without_names(ahead.end, one.start))
                if joined and leads and set(ahead.concepts) & PRICED:
                    return (*ahead.concepts, CLOSE)
        return ()

    def _mention_between(self, one: Figure, two: Figure) -> bool:
        return any(one.end <= each.start < two.start for each in self.mentions)

    def _earnings(self, figure: Figure, concepts: tuple[str, ...]) -> tuple[str, ...]:
        """ "EPS of $0.76 is expected" speaks of an estimate."""
        behind = [each for each in self.mentions if each.start >= figure.end][:2]
        ahead = [each for each in self.mentions if each.end <= figure.start][-2:-1]
        expected = "eps_ttm" in concepts and (
            any(
                "eps_next" in each.concepts and _IS.match(self.unnamed[figure.end : each.start])
                for each in behind
            )
            or any("eps_next" in each.concepts for each in ahead)
        )
        return (*concepts, "eps_next", "eps_estimate") if expected else concepts

    @once
    def near(self, figure: Figure) -> tuple[str, ...]:
        """The quantity last named before a figure in its own clause: most likely it is meant."""
        ahead = [each for each in self.mentions if each.end <= figure.start and fits(figure, each)]
        if not ahead or ahead[-1].concepts == (words.OTHER,):
            return ()
        between = self.text[ahead[-1].end : figure.start]
        broken = re.search(r"[,;:()]|\b(?:and|while|with|at|to|from|by|than)\b", between)
        return () if broken or self._any_figure(ahead[-1].end, figure.start) else ahead[-1].concepts

    def sought(self, figure: Figure) -> tuple[str, ...]:
        """The quantity that a figure most likely is: named beside it, or last before it."""
        ahead = [each for each in self.mentions if each.end <= figure.start and fits(figure, each)]
        return self.tight(figure) or (ahead[-1].concepts if ahead else ())

    def is_whole(self, figure: Figure) -> bool:
        """Whether an amount is what a share is of: "18% of $103,507"."""
        return figure.unit == "money" and bool(_SHARE_OF.search(self.before(figure, 10)))

    def _names_what_is_before(self, figure: Figure, mention: Mention) -> bool:
        """`$25.52, the low of June 6`, but not the low in `$34.63, the low at $26.43`."""
        gap = self.text[figure.end : mention.start]
        for name in self.named:
            gap = gap.replace(name.ticker, "")
        own = re.match(
            r"^\s*(?:at|of|is|was|:|north of|south of|above|over|below|under)?\s*(?:about\s)?"
            r"\(?[-+(−$€£\d]",
            self.text[mention.end :],
        )
        article = re.search(r",\s(?:which\sis\s)?(?:the|its|a|an)\s", gap)
        starts = "," in gap and (
            not article or _GOES_ON.match(self.text[mention.end :]) or self._is_led(figure)
        )
        return bool(_RIGHT_BEHIND.match(gap)) and not own and not starts

    def _behind(self, figure: Figure, fitting: Sequence[Mention]) -> list[Mention]:
        """Mentions behind a figure; a period names no quantity that has no percent."""
        return [
            each
            for each in fitting
            if each.start >= figure.start
            and (each.concepts != ("equity",) or self.facts.now(None, "equity"))
            and not (figure.unit == "number" and each.concepts[0].endswith("_pct"))
            and not self._any_figure(figure.end, each.start)
        ]

    def _listed(self, figure: Figure) -> tuple[str, ...]:
        """`EMA12 and EMA26 stand at 1 and 2`: the figure's place gives its quantity."""
        group = self._row_of_figures(figure)
        if len(group) < 2:
            return ()
        ahead = [each for each in self.mentions if each.end <= group[0].start][-2:]
        rivals = RIVALS.match(self.text[group[0].end : group[1].start])
        if rivals and len(group) == len(ahead) == 2 and all(fits(figure, each) for each in ahead):
            return ahead[group.index(figure)].concepts
        rows = [row for row in rows_of(self.mentions, self.text) if len(row) == len(group)]
        fitting = [
            row
            for row in rows
            if row[-1].end <= group[0].start
            and all(map(fits, group, row))
            and not self._any_figure(row[0].start, group[0].start)
        ]
        fitting += [row for row in rows if self._row_behind(group, row)]
        if fitting:
            return fitting[-1][group.index(figure)].concepts
        averages = [each for each in self.carried if each.concepts[0].startswith(("sma", "ema"))]
        if re.search(r"\bboth\b", self.text[: group[0].start]) and len(averages) == len(group):
            return averages[group.index(figure)].concepts
        return ()

    def _row_behind(self, group: Sequence[Figure], row: Sequence[Mention]) -> bool:
        """`6.3% and 10.0% over one and three months`: the names come behind, in order."""
        gap = self.text[group[-1].end : row[0].start]
        return bool(_ROW_BEHIND.match(gap)) and all(map(fits, group, row))

    @property
    def from_to(self) -> tuple[Fact | None, Fact | None]:
        """Where "from A to B" says that a change starts and ends."""
        start = end = None
        for each, fact in sorted(self.traced.items(), key=lambda item: item[0].start):
            before = self.before(each, 10)
            if start is None and self.starts(each):
                start = fact
            elif start is not None and end is None and _UP_TO.search(before):
                end = fact
        return start, end

    @once
    def beside(self, figure: Figure) -> tuple[str, ...]:
        """The amount that a percentage stands beside: "cash 33%", "ATR €3.72 (1.6%)"."""
        if figure.unit != "percent":
            return ()
        last = [each for each in self.figures if each.end <= figure.start][-1:]
        for other in last:
            if _OPENED.match(self.text[other.end : figure.start]):
                known = self.traced.get(other)
                return (known.concept,) if known else self.tight(other)
        ahead = [each for each in self.mentions if each.end <= figure.start][-1:]
        for each in ahead:
            if _LEADS_TO.match(self.text[each.end : figure.start]):
                return each.concepts
        head = self.listed_after(figure)
        return self.beside(head) if head else ()

    def restates(self, figure: Figure) -> bool:
        """Whether a percentage in parentheses says a share again: "a third of sales (33%)"."""
        last = [each for each in self.figures if each.end <= figure.start][-1:]
        return self.before(figure, 1) == "(" and any(
            each.unit == "ratio" and words.OF.match(self.after(each)) for each in last
        )

    def is_own(self, figure: Figure) -> bool:
        """Whether the writer's own words ("a weight of") reach a figure; they end with a clause."""
        if self.tight(figure) == (words.OWN,):
            return True
        head = self.listed_after(figure)
        if head and not self._mention_between(head, figure):
            return self.is_own(head)
        row = self._row_of_figures(figure)
        ahead = [each for each in self.mentions if each.end <= row[0].start]
        if not ahead:
            return True
        between = self.without_names(ahead[-1].end, row[0].start)
        left = re.search(r"[,;]\s|:.*\w", between)
        return not (left and re.search(r"\w+\s+\w+", between))

    def is_held(self, figure: Figure) -> bool:
        """Whether the evidence holds a position, of which "earned $3 a share" may be said."""
        return any(self.facts.now(ticker, "average_cost") for ticker in self.tickers(figure))

    def changes(self, figure: Figure) -> bool:
        """Whether words make a figure a change or a distance."""
        if figure.unit == "points":
            return True
        return bool(
            words.PER_SHARE.search(self.clause(figure))
            or figure.signed
            or self.direction(figure)
            or self.is_compared(figure)
        )
