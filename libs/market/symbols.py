"""Symbols of shares: what is no share, and what a suffix says.

no_share("ES=F")          a future
venue_of("0700.HK")       XHKG, HK, HKD
is_us_ticker("BRK.B")     True
lot_of("XTKS")            100
currency("GBp")           GBX
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from contracts.types import SHARE_CLASS
from libs.market.errors import MarketError


class UnknownCurrency(MarketError):
    """The text is not a currency code."""

    code = "unknown_currency"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text[:20]!r} is no currency of ISO 4217; write three letters such as USD, or GBX "
            "for prices in pence"
        )


@dataclass(frozen=True, slots=True)
class Venue:
    """An exchange by Yahoo's suffix. `country` is ISO 3166 alpha-2, `exchange` ISO 10383."""

    exchange: str
    country: str
    currency: str


EUROPE = frozenset(
    {"AS", "BR", "CO", "DE", "HE", "IR", "L", "LS", "MC", "MI", "OL", "PA", "ST", "SW", "VI"}
)
"""The suffixes of the table of European names."""
VENUES: Mapping[str, Venue] = {
    "AS": Venue("XAMS", "NL", "EUR"),
    "AT": Venue("ASEX", "GR", "EUR"),
    "AX": Venue("XASX", "AU", "AUD"),
    "BA": Venue("XBUE", "AR", "ARS"),
    "BD": Venue("XBUD", "HU", "HUF"),
    "BK": Venue("XBKK", "TH", "THB"),
    "BO": Venue("XBOM", "IN", "INR"),
    "BR": Venue("XBRU", "BE", "EUR"),
    "CO": Venue("XCSE", "DK", "DKK"),
    "DE": Venue("XETR", "DE", "EUR"),
    "DU": Venue("XDUS", "DE", "EUR"),
    "F": Venue("XFRA", "DE", "EUR"),
    "HE": Venue("XHEL", "FI", "EUR"),
    "HK": Venue("XHKG", "HK", "HKD"),
    "HM": Venue("XHAM", "DE", "EUR"),
    "IC": Venue("XICE", "IS", "ISK"),
    "IR": Venue("XDUB", "IE", "EUR"),
    "IS": Venue("XIST", "TR", "TRY"),
    "JK": Venue("XIDX", "ID", "IDR"),
    "JO": Venue("XJSE", "ZA", "ZAR"),
    "KL": Venue("XKLS", "MY", "MYR"),
    "KQ": Venue("XKOS", "KR", "KRW"),
    "KS": Venue("XKRX", "KR", "KRW"),
    "L": Venue("XLON", "GB", "GBP"),
    "LS": Venue("XLIS", "PT", "EUR"),
    "MC": Venue("XMAD", "ES", "EUR"),
    "MI": Venue("XMIL", "IT", "EUR"),
    "MX": Venue("XMEX", "MX", "MXN"),
    "NS": Venue("XNSE", "IN", "INR"),
    "NZ": Venue("XNZE", "NZ", "NZD"),
    "OL": Venue("XOSL", "NO", "NOK"),
    "PA": Venue("XPAR", "FR", "EUR"),
    "PR": Venue("XPRA", "CZ", "CZK"),
    "PS": Venue("XPHS", "PH", "PHP"),
    "RG": Venue("XRIS", "LV", "EUR"),
    "SA": Venue("BVMF", "BR", "BRL"),
    "SG": Venue("XSTU", "DE", "EUR"),
    "SI": Venue("XSES", "SG", "SGD"),
    "SN": Venue("XSGO", "CL", "CLP"),
    "SR": Venue("XSAU", "SA", "SAR"),
    "SS": Venue("XSHG", "CN", "CNY"),
    "ST": Venue("XSTO", "SE", "SEK"),
    "SW": Venue("XSWX", "CH", "CHF"),
    "SZ": Venue("XSHE", "CN", "CNY"),
    "T": Venue("XTKS", "JP", "JPY"),
    "TA": Venue("XTAE", "IL", "ILS"),
    "TL": Venue("XTAL", "EE", "EUR"),
    "TO": Venue("XTSE", "CA", "CAD"),
    "TW": Venue("XTAI", "TW", "TWD"),
    "TWO": Venue("ROCO", "TW", "TWD"),
    "V": Venue("XTSX", "CA", "CAD"),
    "VI": Venue("XWBO", "AT", "EUR"),
    "VS": Venue("XLIT", "LT", "EUR"),
    "WA": Venue("XWAR", "PL", "PLN"),
}
HUNDREDTHS: Mapping[str, tuple[str, str]] = {
    "L": ("GBX", "GBP"),
    "JO": ("ZAC", "ZAR"),
    "TA": ("ILA", "ILS"),
}
"""Suffixes of exchanges that quote in pence, cents and agorot, while some files have whole units:
the two currencies that prices may be in."""

LOTS: Mapping[str, int] = {
    **dict.fromkeys(("XTKS", "XSHG", "XSHE", "XSES", "XKLS", "XBKK", "XIDX"), 100),
    **dict.fromkeys(("XTAI", "ROCO"), 1000),
}
"""By exchange: the shares that are bought together. Hong Kong has a lot for each security, which
only a listing can say."""

PAIR = "a crypto or currency pair"

_PAIR = re.compile(
    r"[A-Z0-9]{2,}[-/](USD|USDT|USDC|EUR|GBP|JPY|CHF|BTC|ETH)"
    r"|[A-Z0-9]{2,}/[A-Z0-9]{2,}|[A-Z]{3,}=X"
)
_STOOQ = re.compile(r"([A-Z0-9.-]+)\.US")
_CODES = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP "
    "BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP "
    "GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR "
    "KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK "
    "MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR "
    "SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS "
    "UAH UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG"
)
_OLD = "ATS BEF CYP DEM EEK ESP FIM FRF GRD HRK IEP ITL LTL LUF LVL MTL NLG PTE SIT SKK"
MINOR: Mapping[str, str] = {"GBX": "GBP", "ZAC": "ZAR", "ILA": "ILS"}
"""Hundredths in which shares are quoted, and the currency of each."""
CURRENCIES = frozenset((*_CODES.split(), *_OLD.split(), *MINOR))
"""ISO 4217, also those that the euro replaced, and the hundredths of MINOR."""


def no_share(ticker: str) -> str:
    """The kind of thing that a ticker names where it is no share; empty for a share.

    `ticker` is in capitals.
    """
    if SHARE_CLASS.fullmatch(ticker):
        return ""
    if _PAIR.fullmatch(ticker) or "/" in ticker:
        return PAIR
    if (stooq := _STOOQ.fullmatch(ticker)) is not None:
        return f"Stooq's spelling of {stooq[1]}"
    if ticker.startswith("^"):
        return "an index"
    return "a future" if "=" in ticker else ""


def venue_of(ticker: str) -> Venue | None:
    """The exchange that a ticker's suffix names; None for any other ticker."""
    _, dot, suffix = ticker.rpartition(".")
    return VENUES.get(suffix) if dot else None


def is_us_ticker(ticker: str) -> bool:
    """Whether it can be a ticker of a US exchange, as the desk and Alpaca spell it: letters, with a
    class behind a dot at most."""
    stem, dot, suffix = ticker.partition(".")
    named = venue_of(ticker) is None and ticker.isascii() and ticker == ticker.upper()
    return named and stem.isalpha() and (suffix.isalpha() if dot else True)


def lot_of(exchange: str) -> int:
    """How many shares are bought together where an exchange has one lot for all; else 1."""
    return LOTS.get(exchange, 1)


def currency(text: str) -> str:
    """The code of a currency: in capitals, pence as GBX. Raises `UnknownCurrency`."""
    text = text.strip()
    code = "GBX" if text == "GBp" else text.upper()
    if code not in CURRENCIES:
        raise UnknownCurrency(text)
    return code
