# ruff: noqa: E501, ISC004  (each row of a table stands on its line)
"""The words of a report: which quantity they name, which way they point, what they ask for.

Everything here is a table. A word that names a quantity which no tool answers (`OTHER`) keeps its
figure from passing as something else; the writer's own judgement (`OWN`) is no claim at all.
"""

import re
from dataclasses import dataclass

OTHER = "other"
OWN = "own"

# The first that matches takes its words; a name in a report may mean any of its quantities.
_NAMED: tuple[tuple[str, str], ...] = (
    (
        OWN,
        r"(?:fundamental|technical|risk|sentiment|composite)(?:[_ ]score)?(?=\s\d)|scores?\b|scored\b|"
        r"confidence|conviction|odds|chance|probability|likelihood|horizon|weights?\b|budget|"
        r"allocation|risk limit|reward[- ]to[- ]risk target|within(?=\s\d+ (?:days|weeks|sessions))",
    ),
    (
        OTHER,
        r"52-week (?:high|low)|all-time high|gross margin|free cash flow|cash flow|dividend yield|"
        r"yields?\b|dividends?\b|payout|fair value|discounted|price target|targets?\b|stops?\b|"
        r"guidance|hit rate|ratings?\b|cases\b|beta\b|sharpe\w*(?: ratio)?|drawdown|peg\b|roe\b|roa\b|"
        r"roic\b|ebitda|book value|price to book|p/b\b|employees|staff|data cent\w+|units|users|"
        r"subscribers|customers|short interest|inflation|interest rates?|the fed\b|index\b|s&p 500|"
        r"dow \d+|nasdaq|russell \d+|growth|grow|grew|upside|tax\b|jobs|deals?\b|order intake|"
        r"orders? (?:worth|of)|contracts?\b|buy-?backs?|lock-up|stores|patents|support\b|resistance\b",
    ),
    ("rsi_14", r"rsi(?:[_ ]?14)?\b|relative strength(?: index)?|14-day rsi"),
    ("macd_histogram", r"macd[_ ]hist(?:ogram)?|hist(?:ogram)?\b"),
    ("macd_signal", r"(?:macd )?signal(?: line)?|macd_signal"),
    ("macd", r"macd(?: line)?\b"),
    ("bollinger_upper", r"upper (?:bollinger )?band|bollinger_upper|upper one"),
    ("bollinger_lower", r"lower (?:bollinger )?band|bollinger_lower|(?:the )?lower(?= at)"),
    ("sma_20", r"(?:middle|mid)(?: bollinger)? band|bollinger_middle"),
    ("ema_12", r"12-day (?:ema|exponential)(?: moving)?(?: average)?|ema[-_ ]?\(?12\)?|12-day line"),
    ("ema_26", r"26-day (?:ema|exponential)(?: moving)?(?: average)?|ema[-_ ]?\(?26\)?|26-day line"),
    ("sma_20", r"20[- ]?d(?:ay|ma)(?: simple)?(?: moving)?(?: average| line| sma| ma| one)?|sma[-_ ]?\(?20\)?(?!\d)"),
    ("sma_50", r"50[- ]?d(?:ay|ma)(?: simple)?(?: moving)?(?: average| line| sma| ma| one)?|sma[-_ ]?\(?50\)?(?!\d)"),
    ("sma_200", r"200[- ]?d(?:ay|ma)(?: simple)?(?: moving)?(?: average| line| sma| ma| one)?|sma[-_ ]?\(?200\)?(?!\d)"),
    (OTHER, r"\d{1,3}-day (?:moving )?(?:average|line|ema|sma)"),
    ("atr_14", r"atr(?:[_ ]?14)?\b|average true range|14-day atr|atr\(14\)"),
    ("volatility_3m_pct", r"(?:three-month |3-month )?volatility\w*|volatile|vol\b"),
    (
        "momentum_1m_pct",
        r"(?:one|1)-month (?:momentum|return|gain|loss|change)|momentum_1m_pct|"
        r"(?:momentum |mom )?(?:over|in|within) (?:a|one|the) month|one month\b|mom(?:entum)? 1m\b|1m\b|"
        r"a month(?:'s)?(?: momentum)?|the month\b|month's momentum|one-month\b",
    ),
    (
        "momentum_3m_pct",
        r"(?:three|3)-month (?:momentum|return|gain|loss|change)|momentum_3m_pct|"
        r"(?:momentum )?(?:over|in|within) (?:three months|a quarter)|3m\b|a quarter's(?: momentum)?|"
        r"three months\b|three-month\b|(?<=in )a quarter\b",
    ),
    ("day_change_pct", r"day_change_pct|day changes?|daily (?:changes?|moves?|gains?|loss(?:es)?)|on the day\b|day's (?:gain|loss|change|move)|in a day\b"),
    ("volume", r"volumes?\b|shares? (?:were )?(?:changed hands|traded)|trading was|turnover|traded\b(?= \d)"),
    ("operating_margin_pct", r"operating (?:profit )?margins?|operating_margin_pct"),
    ("profit_margin_pct", r"(?:net (?:profit |income )?|profit )?margins?\b|profit_margin_pct|profitability"),
    ("debt_to_equity", r"debt(?:[- _]to[- _]equity|/equity| is| above equity)?\b|leverage|d/e\b|debt ratio|indebted\w*|borrow\w*"),
    ("pe_ratio", r"p/?e\b(?: ratios?| multiple)?|pe_ratio|price/earnings|earnings multiple|price[- ]to[- ]earnings|price-earnings|times earnings|multiple\b"),
    ("market_cap", r"market[ _](?:value|cap(?:italisation|italization)?)|capitali[sz]ation|(?:company|group|it) is worth|valued\b|of value\b|valuation of"),
    ("revenue_ttm", r"revenues?\b(?:_ttm)?|sales\b|top line"),
    ("shares_outstanding", r"shares(?: are)? outstanding|shares_outstanding|share count|shares:|shares in issue"),
    ("eps_next eps_estimate", r"estimates?\b|estimated|expected|expects|expectations|consensus|forecast\w*|pencilled in|looked for|seen at"),
    ("eps_ttm eps_actual", r"earnings(?: of| per share)?|eps(?:_ttm)?\b|earned|net loss|loss(?= (?:was|of) (?:\$|\d+ cents))"),
    ("average_cost", r"average[_ ]cost|costs? (?:of|basis|price)|(?:on|under|over|above|below) (?:a |its |our )?cost\b|paid\b|bought (?:at|for)|entry\b|purchase price|cost (?:a|per) share|our cost"),
    ("equity", r"(?:total |account )?equity\b|account value|portfolio value|net asset value|the (?:account|portfolio) is worth"),
    ("cash", r"cash\b"),
    ("order_quantity", r"on order|orders? for|to be bought"),
    ("quantity", r"hold(?:s|ing|ings)?\b|held\b|own(?:s|ed)?\b|shares? held|positions?\b"),
    ("low", r"as low as|lows?\b|lowest|trough\w*|bottom(?:ed)?"),
    ("high", r"as high as|highs?\b|topp?ed\b|highest|peak(?:ed)?"),
    ("open", r"open(?:ed|s|ing)?\b(?! orders?)"),
    ("bars", r"bars\b"),
    ("close", r"clos(?:e|es|ed|ing)\b|(?<!target )prices?\b|priced at|quoted at|settled|finished at|ended (?=at|\w+day)|trad(?:es|ing|ed) (?=at|below|above|under|over|between)|current_price|costs\b"),
    ("volume quantity order_quantity shares_outstanding", r"shares\b"),
)  # fmt: skip
_MENTION = re.compile(
    "|".join(f"(?P<n{index}>(?<![a-z])(?:{words}))" for index, (_, words) in enumerate(_NAMED)),
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """Words that name a quantity, and which ones they may mean."""

    start: int
    end: int
    concepts: tuple[str, ...]


def mentions(text: str) -> tuple[Mention, ...]:
    """The quantities that a text names, in its order."""
    return tuple(
        Mention(match.start(), match.end(), tuple(_NAMED[int(match.lastgroup[1:])][0].split()))
        for match in _MENTION.finditer(text)
        if match.lastgroup
    )


DOWN = re.compile(
    r"\b(?:f[ae]ll(?:s|ing|en)?|los(?:t|e|es|ing|s|ses)|down|drop(?:s|ped|ping)?|slid(?:e|es)?|slip\w*|"
    r"declin\w+|decreas\w+|below|under|beneath|lower|cheaper|miss(?:ed|es)?|negative|weaker|shr[aiu]nk|"
    r"slump\w*|s[iau]nk\w*|shed(?:s|ding)?|tumbl\w+|plung\w+|plummet\w*|eas(?:ed|es|ing)|retreat\w*|g[ai]ve(?:s|n)? (?:up|back)|worse|poorer|weaken\w*|minus|short of|that cost|in the red|behind|less than|discount)\b",
    re.IGNORECASE,
)
UP = re.compile(
    r"\b(?:r[io]se[sn]?|rising|gain(?:s|ed|ing)?|up|above|over|higher|jump\w*|climb\w*|add(?:ed|s)|beat(?:s|en)?|"
    r"grew|grow\w*|increas\w+|ahead|profit\w*|earn(?:ed|s)?|positive|upside|bounc\w+|advanc\w+|in the black|"
    r"surprise|soar\w*|surg\w+|rall(?:y|ied|ies)|rebound\w*|recover\w*|improv\w+|outperform\w*|better|stronger|top(?:s|ped)|premium|dearer|raised|lifted)\b",
    re.IGNORECASE,
)
# "over" that tells a time and no direction.
OVER_TIME = re.compile(
    r"\bover (?:(?:the|a|an|its|past|last) )*(?:\w+ )?(?:sessions?|months?|weeks?|years?|days?|quarters?)\b",
    re.IGNORECASE,
)
BOUND_ABOVE = re.compile(
    r"\b(?:above|over|more than|at least|beyond|exceed\w*|upwards of)\s$", re.IGNORECASE
)
BOUND_BELOW = re.compile(
    r"\b(?:below|under|less than|fewer than|at most|beneath)\s$", re.IGNORECASE
)
MEAN = re.compile(
    r"\b(?:on average|average|averaged|averaging|(?<!both )(?<!all )(?<!moving )(?<!the )averages|mean)\b",
    re.IGNORECASE,
)
NOT_NOW = re.compile(
    r"\b(?:year|since|quarter to|last (?:year|quarter|month)|in the past|Q[1-4])\b", re.IGNORECASE
)
PREVIOUS = re.compile(
    r"\b(?:day|session) before\b|\bprevious (?:day|session|close)\b|\byesterday", re.IGNORECASE
)
FIRST = re.compile(
    r"\bfirst\b|\bsince\b|\bfrom\b|\blisting\b|\bover (?:the )?\w+ sessions\b|\bsessions\b|\bclose to close\b",
    re.IGNORECASE,
)
IN_A_SESSION = re.compile(
    r"\bon the day\b|\b(?:in|within) (?:a|one) (?:session|day)\b|\bday's\b|\b\w+day's\b",
    re.IGNORECASE,
)
# Words in capitals that are no tickers.
ABBREVIATIONS = frozenset(
    [
        "AI",
        "API",
        "ATH",
        "ATR",
        "ADR",
        "AGM",
        "ASIC",
        "BN",
        "BOE",
        "BOJ",
        "BPS",
        "CAC",
        "CAGR",
        "CAPEX",
        "CDS",
        "CEO",
        "CFO",
        "CIO",
        "COO",
        "COVID",
        "CPI",
        "CPU",
        "CTO",
        "DAX",
        "DCF",
        "DJIA",
        "DMA",
        "EBIT",
        "EBITDA",
        "ECB",
        "EMA",
        "EPS",
        "ESG",
        "ETF",
        "ETFS",
        "EU",
        "EUR",
        "FCF",
        "FDA",
        "FED",
        "FOMC",
        "FTSE",
        "FX",
        "FY",
        "GAAP",
        "GBP",
        "GDP",
        "GPU",
        "HQ",
        "IFRS",
        "II",
        "III",
        "IMF",
        "IP",
        "IPO",
        "IPOS",
        "ISO",
        "IT",
        "IV",
        "JPY",
        "KPI",
        "LLC",
        "LLM",
        "LTM",
        "MA",
        "MACD",
        "MDAX",
        "MBS",
        "MOM",
        "MTD",
        "MOU",
        "NASDAQ",
        "NAV",
        "NII",
        "NIM",
        "NYSE",
        "OECD",
        "OEM",
        "OK",
        "OPEC",
        "OTC",
        "PC",
        "PE",
        "PEG",
        "PB",
        "PMI",
        "PPI",
        "PS",
        "QE",
        "QOQ",
        "QT",
        "RD",
        "ROA",
        "ROCE",
        "ROE",
        "ROI",
        "ROIC",
        "RSI",
        "SAAS",
        "SEC",
        "SMA",
        "SPAC",
        "TTM",
        "TV",
        "UK",
        "UN",
        "US",
        "USA",
        "USD",
        "VAT",
        "VIX",
        "VS",
        "VWAP",
        "WACC",
        "WTI",
        "WTO",
        "YOY",
        "YTD",
        "SP",
        "AM",
        "PM",
        "ET",
        "UTC",
        "GMT",
        "NA",
        "NO",
        "NOT",
        "AND",
        "OR",
        "BUY",
        "SELL",
        "HOLD",
        "SSD",
        "RAM",
        "EV",
        "EVS",
        "CFA",
        "BB",
        "OBV",
        "ADX",
        "ATM",
        "OS",
        "PR",
        "HR",
        "RFP",
        "SKU",
        "LNG",
        "LPG",
        "OLED",
        "LED",
        "USB",
        "VC",
        "VP",
        "EMEA",
        "APAC",
        "LATAM",
        "DACH",
        "BRIC",
        "KYC",
        "AML",
        "MIN",
        "MAX",
        "AVG",
        "STOXX",
        "TOPIX",
    ]
)
_STOP = frozenset(
    [
        "about",
        "after",
        "also",
        "and",
        "are",
        "been",
        "before",
        "both",
        "but",
        "from",
        "has",
        "have",
        "her",
        "his",
        "into",
        "its",
        "more",
        "most",
        "not",
        "of",
        "on",
        "only",
        "over",
        "said",
        "says",
        "says",
        "some",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "were",
        "what",
        "when",
        "which",
        "while",
        "who",
        "will",
        "with",
        "would",
        "share",
        "shares",
        "made",
        "tests",
        "headline",
        "headlines",
        "year",
        "day",
        "first",
        "million",
        "billion",
        "thousand",
        "trillion",
        "cents",
        "cent",
        "dollars",
        "euros",
        "euro",
        "percent",
        "points",
    ]
)
_ENDING = re.compile(r"(?:ing|ed|es|s|ers?)$")


def stems(text: str) -> frozenset[str]:
    """The words of a text that carry meaning, cut to their first letters."""
    found = re.findall(r"[a-z][a-z'-]{2,}", text.lower())
    return frozenset(_ENDING.sub("", word)[:6] for word in found if word not in _STOP)
