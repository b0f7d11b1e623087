"""Which figure of a sentence is a mean."""

import re
from functools import cached_property

from libs.quant.grounding import words
from libs.quant.grounding.compared import Compared
from libs.quant.grounding.figures import Figure

_ON_AVERAGE = re.compile(r"^\s(?:(?:on|in|at)\s)?(?:the\s)?(?:average|mean|norm)(?=[,;:.)])")
"""Behind a figure: it is that figure's, and no more the next one's."""
_OF_THE_ONE_BEFORE = re.compile(r"^[^,;]*\b(?:on average|in the mean)[,;]")
_STARTS_ANEW = re.compile(r"^.*:\s(?=[^\W\d]+\s[^\W\d]+\s)")


class Averaged(Compared):
    """A sentence of which one can ask whether a figure is a mean."""

    @cached_property
    def unnamed(self) -> str:
        """The text without the words that name quantities."""
        text = self.text
        for mention in self.mentions:
            text = text[: mention.start] + "#" * (mention.end - mention.start) + text[mention.end :]
        return text

    def asks_mean(self, figure: Figure | None = None) -> bool:
        """Whether words ask for a mean, other than those that name an average or a cost.

        With a figure: the words between it and the figure before.
        """
        text = self.unnamed
        if figure is not None:
            ahead = [
                each.end
                for each in self.figures
                if each.end <= figure.start and each.unit != "count"
            ]
            # "up 2.4% on average (AAPL 2.63%)": the mean is the figure's that stands before it.
            owner = [each.start for each in self.named if self.text[each.end : figure.start] == " "]
            start = max((*ahead[-1:], *owner), default=0)
            # With the figure itself, by which "averages 24.7%" is told from a name.
            text = _ON_AVERAGE.sub("" if ahead else r"\g<0>", text[start : figure.end])
            text = _STARTS_ANEW.sub("", text)
            # "38.9 on average, from 21.0": behind a comma it is said of the one before.
            text = _OF_THE_ONE_BEFORE.sub("", text) if ahead else text
        return bool(words.MEAN.search(text))

    def is_mean(self, figure: Figure) -> bool:
        """Whether words beside a figure say that it is a mean."""
        return self.asks_mean(figure) or bool(words.MEAN.search(self.after(figure, 14)))
