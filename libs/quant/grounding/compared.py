# ruff: noqa: PLR0911  (a list of readings, one a line)
"""What a figure of a sentence is held against, and the direction that words give it."""

import re
from operator import itemgetter

from libs.quant.grounding import words
from libs.quant.grounding.dated import Dated
from libs.quant.grounding.facts import CLOSE
from libs.quant.grounding.figures import Figure
from libs.quant.grounding.spoken import NEAR_CHARS, once

_FROM = re.compile(r"\bfrom\s(?:(?:an?|the|its)\s[a-z -]{4,16}\sof\s)?$", re.IGNORECASE)
_BY = re.compile(r"\bby\s(?:about\s|some\s)?$", re.IGNORECASE)
_ASIDE = re.compile(r"^(?:\s\([^()]*\)|,[^,;]*,|\s(?:at|of) \S+)?\sby\b", re.IGNORECASE)
"""What may stand between what is exceeded and by how much: its value, said aside."""
_OR = re.compile(
    r"^,?\s(?:or|that is|namely|i\.e\.,?)\s[-+$€£\d.]+%?(?:\s(?:a|per) share)?,?(?=\s)"
)
"""Behind a figure that is said in another unit: "$31.94, or 20%, behind"."""
_BROKEN_OFF = re.compile(r"^\s*(?:[,.;)]|$)")
HELD_AGAINST = re.compile(r"^\s(?:versus|vs|against|compared with)\b", re.IGNORECASE)
"""Between two levels: neither is a distance."""
_SAID_ASIDE = re.compile(r",\s(?:or|that is|namely|i\.e\.,?)\s$")
_POINTED = re.compile(r"(?P<down>off)\b(?! (?:its|the|their|that)\b)|more\b(?! than)")
"""Words that point right behind a figure, and elsewhere do not: "took 0.85% off"."""
_ABOUT_MEAN = re.compile(
    r"\b(?:above|below|over|under|than)\s(?:\S+\s){1,3}(?:mean|average|norm)\s(?:of|at)\s$"
)
_IS_BEYOND = re.compile(r"^\s(?:is|was)\s(?:above|below|over|under|beneath)\s")


_PAST = re.compile(r"\b(?:behind|ahead of|below|above|under|over|beneath)\s$", re.IGNORECASE)


class Compared(Dated):
    """A sentence of which one can ask what a figure is measured from."""

    @once
    def compared_with(self, figure: Figure) -> tuple[str, ...]:
        """What "above", "below" or "from" behind a figure is said of; empty where nothing is."""
        right = self.after(figure, 60)
        found = words.COMPARED.match(right)
        if found is None:
            return self._exceeded(figure)
        start = figure.end + found.end()
        if self.text.startswith("here", start):
            return (CLOSE,)
        if words.IT.match(self.text[start:]):
            ahead = [each for each in self.mentions if each.end <= figure.start]
            told = [fact.concept for each, fact in self.traced.items() if each.end <= figure.start]
            quoted = ("headline",) if "headline" in told else ()
            return (*(name for each in ahead for name in each.concepts), *quoted)
        if _BROKEN_OFF.match(self.text[start:]):
            # "34% below the 50-day, IBM 25% below": what follows the first is meant again.
            same = [
                each
                for each in self.figures
                if each.end <= figure.start and each.unit == figure.unit
            ]
            return self.compared_with(same[-1]) if same else ()
        for mention in self.mentions:
            if mention.end > start and mention.start <= start + NEAR_CHARS:
                if HELD_AGAINST.match(right):
                    # "$31.59 against an ATR of $25.04": two figures, each its own.
                    return ()
                given = [each for each in self.figures if start <= each.start < mention.start]
                known = {self.traced[each].concept for each in given if each in self.traced}
                return mention.concepts if not given or known & {*mention.concepts} else ()
        return ()

    def _exceeded(self, figure: Figure) -> tuple[str, ...]:
        """What something lies beyond: "ahead of the 200-day ($486.60) by 20.0%"."""
        ahead = [each for each in self.mentions if each.end <= figure.start]
        if not ahead or figure.unit != "percent" or not _BY.search(self.before(figure, 12)):
            return ()
        passed = self.text[ahead[-1].end : figure.start]
        return ahead[-1].concepts if _ASIDE.match(passed) else ()

    def held_against(self, figure: Figure) -> tuple[str | None, tuple[str, ...]]:
        """The ticker and quantity of "volatility is twice ECHO's"; None where there are none."""
        if figure.unit not in {"times", "ratio"}:
            return None, ()
        name = next((n for n in self.named if 0 <= n.start - figure.end <= 1), None)
        ahead = [each for each in self.mentions if each.end <= figure.start]
        # "the highest in the set, twice ECHO's": highest of what was named.
        spoken = [each for each in ahead if not {"high", "low"} & {*each.concepts}][-1:] or [
            each for each in self.mentions if name and 0 <= each.start - name.end <= len("'s ")
        ]
        if name is None or not spoken or not self.text.startswith("'s", name.end):
            return None, ()
        return name.ticker, spoken[0].concepts

    def rival(self, figure: Figure) -> str | None:
        """The ticker that "above" or "more than" behind a figure is said of: "above ECHO's"."""
        found = words.COMPARED.match(self.after(figure))
        start = figure.end + found.end() if found else -1
        return next((each.ticker for each in self.named if each.start == start), None)

    def starts(self, figure: Figure) -> bool:
        """Whether a figure is where a change starts: "from 569.05"."""
        return bool(_FROM.search(self.before(figure, 32)))

    @once
    def is_compared(self, figure: Figure) -> bool:
        """Whether a comparison follows a figure, or words of a distance stand with it."""
        return bool(
            words.COMPARED.match(self.after(figure)) or words.GAP.search(self.clause(figure))
        )

    @once
    def direction(self, figure: Figure) -> int:
        """-1 for words that point down, 1 for up, 0 where there are none."""
        text = words.OVER_TIME.sub(lambda match: " " * len(match.group()), self.text)
        for name in (each for each in self.named if each.end <= figure.start):
            # "well behind FB (5.1%)": who is behind is another.
            past = _PAST.search(text[: name.start])
            if past:
                text = text[: past.start()] + " " * len(past.group()) + text[name.start :]
        named = [each for each in self.mentions if each.start >= figure.end][:1]
        # "a 9.5% three-month slump": past a name that is the figure's own, one word counts.
        cuts = [each.end + 12 * (each.start - figure.end <= 2) for each in named]
        end = min([figure.end + 40, *cuts])
        aside = _OR.match(text[figure.end : end])
        start = figure.end + (aside.end() if aside else 0)
        if _SAID_ASIDE.search(self.before(figure, 16)):
            # "barely, that is 1.8%, above its lower band": its comma ends nothing.
            start += text.startswith(", ", start)
        right = re.split(r"[,;:(]", text[start:end])[0]
        near = re.match(
            r"^\W*(?:a share\s|per share\s|percentage points\s|points\s|is\s)*",
            right,
        )
        first = right[near.end() if near else 0 :]
        if pointed := _POINTED.match(first):
            return -1 if pointed["down"] else 1
        if _IS_BEYOND.match(right):
            # "whose 7.5% is below the mean": the figure itself is what is compared.
            first = right = ""
        for sign, pattern in ((-1, words.DOWN), (1, words.UP)):
            if pattern.match(first):
                return sign
        left = _ABOUT_MEAN.sub("", re.split(r";", text[: figure.start])[-1])
        told = words.directions(left)[-1:] or sorted(words.directions(right), key=itemgetter(1))
        return told[0][1] if told else 0
