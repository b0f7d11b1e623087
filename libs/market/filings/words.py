"""Filings in plain words: our own rendering of forms and item numbers, no filing's text. Pure.

The items are those of the SEC's Form 8-K since August 2004 (release 33-8400), and 1.05 since 2023.
"""

from libs.market.filings.reported import Filing

ITEMS = {
    "1.01": "an important contract",
    "1.02": "an important contract ended",
    "1.03": "bankruptcy",
    "1.04": "mine safety",
    "1.05": "a serious computer attack",
    "2.01": "bought or sold a business",
    "2.02": "results of a period",
    "2.03": "a new debt",
    "2.04": "a debt is due early",
    "2.05": "closing or leaving a business",
    "2.06": "a large write-down",
    "3.01": "trouble with its listing",
    "3.02": "sold unregistered shares",
    "3.03": "changed the rights of holders",
    "4.01": "changed its auditor",
    "4.02": "earlier accounts cannot be relied on",
    "5.01": "control changed hands",
    "5.02": "a director or officer came or left",
    "5.03": "changed its bylaws or fiscal year",
    "5.04": "trading by employees' plans stopped",
    "5.05": "changed its code of ethics",
    "5.06": "is no shell company any more",
    "5.07": "votes of holders",
    "5.08": "nominations for the board",
    "6.01": "asset-backed securities",
    "7.01": "told investors something",
    "8.01": "other events",
    "9.01": "exhibits",
}
"""Item numbers of an 8-K in a few words."""
QUIET = frozenset({"9.01"})
"""Items that say nothing where there is another."""
FORMS = {
    "10-Q": "quarterly report",
    "10-K": "annual report",
    "10-QT": "report on a shortened quarter",
    "10-KT": "report on a shortened year",
    "20-F": "annual report of a foreign company",
    "40-F": "annual report of a Canadian company",
    "6-K": "report of a foreign company",
    "8-K": "report of an event",
}
AMENDED = "/A"


def filing_text(filing: Filing) -> str:
    """A filing in words: its form, the form's meaning, and its period or the items of an 8-K."""
    form = filing.form.removesuffix(AMENDED)
    what = FORMS.get(form, "filing")
    if filing.form.endswith(AMENDED):
        what = f"amended {what}"
    loud = [item for item in filing.items if item not in QUIET] or list(filing.items)
    if loud:
        items = "; ".join(f"{item} {ITEMS.get(item, 'an item of its own')}" for item in loud)
        return f"{filing.form}: {items}"
    on = f" on the period to {filing.period_end}" if filing.period_end else ""
    return f"{filing.form}: {what}{on}"
