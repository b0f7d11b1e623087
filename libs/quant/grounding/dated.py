"""Which day each figure of a sentence is of."""

import re
from dataclasses import replace
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise

from libs.quant.grounding import words
from libs.quant.grounding.figures import MONTHS, Figure
from libs.quant.grounding.spoken import Spoken, once

ADJACENT_CHARS = 8
_OF_DAY = re.compile(
    r"^,? (?:(?:at|is|was) )?(?:the|its|a) [a-z -]{3,20} (?:of|on) $|^ on \w+day,? (?:the )?$|"
    r"^ shares,? (?:on|of) (?:\w+day,? )?(?:the )?$",
    re.IGNORECASE,
)
"""Between a figure and its date: "$25.52, the low of June 6"."""
_APART = re.compile(r"[;(]|,\s(?!the\b|its\b|on\b|set\b|made\b|which\b|where\b|when\b)")
_CLAUSE = re.compile(r";|,\s(?:and|but|while|with|whereas)\b", re.IGNORECASE)
_OPENED = re.compile(r"\b(between|from)\s$", re.IGNORECASE)
_JOINS = {"between": " and ", "from": " to "}
_NOW = re.compile(r"^,?\s(?:now|today|currently)\b", re.IGNORECASE)
_RIVAL_DAY = re.compile(r"[,;(]|\b(?:versus|vs|against)\b", re.IGNORECASE)
"""What parts a figure from the day of another."""
_MONTH = re.compile(rf"\b(?:{'|'.join(map(str.title, MONTHS))})\b")
_WEEKDAYS = re.compile(rf"{words.WEEKDAY.pattern}'s\s[a-z -]*$", re.IGNORECASE)


class Dated(Spoken):
    """A sentence of which one can ask which session a figure is of."""

    @cached_property
    def days(self) -> tuple[date, ...]:
        """The days that the sentence names."""
        return tuple(day for _, day in self._days_at)

    @cached_property
    def _days_at(self) -> list[tuple[int, date]]:
        dates: list[tuple[int, date | None]]
        dates = [(each.start, self.resolve(each)) for each in self.figures if each.unit == "date"]
        for match in words.THAT_DAY.finditer(self.text):
            told = [each for each in dates if each[0] < match.start()] or [(0, self.told_day)]
            dates.append((match.start(), told[-1][1]))
        weekdays = words.WEEKDAY.finditer(self.text)
        dates += [(match.start(), self._weekday(match.group())) for match in weekdays]
        return [(start, day) for start, day in dates if day]

    def days_for(self, figure: Figure) -> list[date]:
        """The days, of this sentence and the last, that a figure without a date may be of.

        A day behind it counts where no other figure stands between.
        """
        last = [self.told_day] if self.told_day else []
        return last + [
            day
            for start, day in self._days_at
            if not any(
                figure.end <= each.start < start and each.unit != "date" for each in self.figures
            )
        ]

    def _weekday(self, clause: str) -> date | None:
        """The last session of a weekday that is named, as_of's week."""
        match = words.WEEKDAY.search(clause)
        if match is None or self.facts.as_of is None:
            return None
        back = (self.facts.as_of.weekday() - words.WEEKDAYS.index(match["day"].lower())) % 7
        return self.facts.as_of - timedelta(days=back)

    @once
    def sessions(self, figure: Figure) -> frozenset[date | None]:
        """The sessions that a price may be of; empty where the words do not say."""
        rows = self.facts.rows.get(next(iter(self.tickers(figure)), ""), [])
        known = {day for day, _ in rows}
        as_of = self.facts.as_of
        # "doubled from the day before to 129 million": what follows "to" is of no day before.
        ahead = re.split(r"[,;(]|\bfrom\b[^,;(]*\bto\s", self.before(figure, 40))[-1]
        clause = ahead + self.after(figure, 22)
        if rows[1:] and words.PREVIOUS.search(clause):
            return frozenset({rows[-2][0]})
        own = ahead + re.split(r"[,;(]", self.after(figure, 34))[0]
        if rows and words.LAST.search(own):
            return frozenset({rows[-1][0], None})
        if words.NEXT.search(own):
            told = self.days_for(figure)
            return frozenset(after for (day, _), (after, _) in pairwise(rows) if day in told)
        days = {self._session(figure)} & known
        return frozenset({*days, *((None,) if as_of in days else ())})

    def _session(self, figure: Figure) -> date | None:
        ahead = _RIVAL_DAY.split(self.before(figure, 14))[-1]
        clause = ahead + _RIVAL_DAY.split(self.after(figure, 16))[0]
        owner = _WEEKDAYS.search(self.before(figure, 40))
        if _NOW.match(self.after(figure)):
            return self.facts.as_of
        if that := words.THAT_DAY.search(self.near_words(figure)):
            same = self.text.find(that.group())
            return next((day for start, day in self._days_at if start == same), None)
        if weekday := self._weekday(owner.group() if owner else clause):
            return weekday
        dated = self.dated_by(figure)
        return self.resolve(dated) if dated else None

    @once
    def dated_by(self, figure: Figure) -> Figure | None:
        """The date that the words give a figure: the next behind it, else the last before it."""
        days = [each for each in self.figures if each.unit == "date"]
        for one, two in pairwise(days):
            if figure in (ends := self._ends_of(one, two)):
                return (one, two)[ends.index(figure)]
        several = len({*self.days}) > 1
        behind = [each for each in days if each.start >= figure.end][:1]
        ahead = [each for each in days if each.end <= figure.start][-1:]
        for each in behind:
            between = self.text[figure.end : each.start]
            if between in {" (", "("}:
                return each
            far = len(between) > ADJACENT_CHARS or " and " in between
            if several and far and not _OF_DAY.search(between):
                continue
            apart = _APART.search(between) and not _OF_DAY.search(between)
            if not apart and not self._any_figure(figure.end, each.start):
                return each
        for each in ahead:
            start = each.end if several else 0
            between = self.text[each.end : figure.start]
            if _CLAUSE.search(between) or (several and re.search(r",|\band\b", between)):
                continue
            if not self._figure_between(start, figure.start, figure):
                return each
        return None

    def _ends_of(self, one: Figure, two: Figure) -> list[Figure]:
        """The figures of two days: "between May 3 and May 8 it went from $4 to $5"."""
        opened = _OPENED.search(self.text[: one.start])
        if not opened or self.text[one.end : two.start] != _JOINS[opened[1].lower()]:
            return []
        for start, end in pairwise(each for each in self.figures if each.start >= two.end):
            went = re.search(r"^[^.,;]*\sfrom\s$", self.text[two.end : start.start])
            if went and start.unit == end.unit and self.text[start.end : end.start] == " to ":
                return [start, end]
        return []

    def _figure_between(self, start: int, end: int, figure: Figure) -> bool:
        return any(
            start <= other.start < end and other.unit == figure.unit for other in self.figures
        )

    def resolve(self, figure: Figure) -> date | None:
        """The day a date means, in as_of's year where it names none."""
        as_of = self.facts.as_of
        if as_of is None and figure.year is None:
            return None
        if not figure.month:
            return self._in_month(figure)
        years = [figure.year] if figure.year else [as_of.year, as_of.year - 1] if as_of else []
        for year in years:
            try:
                day = date(year or 0, figure.month, figure.day)
            except ValueError:
                continue
            if as_of is None or day <= as_of or figure.year:
                return day
        return None

    def _in_month(self, figure: Figure) -> date | None:
        """ "the 8th": of the month that the sentence names, else of as_of's or the one before."""
        as_of, day = self.facts.as_of, figure.day
        if as_of is None or not day:
            return None
        named = list(_MONTH.finditer(self.text, 0, figure.start))
        if named:
            month = MONTHS.index(named[-1].group().lower()) + 1
            return self.resolve(replace(figure, month=month))
        ends = as_of if day <= as_of.day else as_of.replace(day=1) - timedelta(days=1)
        return ends.replace(day=day) if day <= ends.day else None
