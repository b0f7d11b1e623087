"""Why execution says no: each with a stable code, and what to do."""

from datetime import date
from decimal import Decimal

from libs.quant.exchange import no_rate
from libs.runtime.errors import DeskError


class CurrencyMismatch(DeskError):
    """An amount in another currency than the account's."""

    code = "currency_mismatch"

    def __init__(self, account: str, currency: str, stated: str) -> None:
        super().__init__(
            f"account {account} is in {currency}, the budget in {stated}: state the budget in "
            f"{currency}"
        )


class BooksNotOpen(DeskError):
    """The account does not exist, or has not reached this session."""

    code = "books_not_open"

    def __init__(self, account: str, as_of: date) -> None:
        super().__init__(
            f"account {account} was not opened for {as_of}; a cycle opens the books before it "
            "executes: request a cycle for this account and session"
        )


class AccountExists(DeskError):
    """Holdings and a binding need a new account: only orders change what an existing one holds.
    `why` says what to do."""

    code = "account_exists"
    field = "account"

    def __init__(
        self,
        account: str,
        why: str = "holdings open a new one only: choose another name (--account)",
    ) -> None:
        super().__init__(f"account {account} exists already, and {why}; nothing was changed")


class BoundToBroker(DeskError):
    """The account is bound to a broker: deposit and withdraw cash there."""

    code = "bound_to_broker"
    field = "account"

    def __init__(self, account: str) -> None:
        super().__init__(
            f"account {account} is bound to a broker: move cash there, and the desk books it from "
            "there; nothing was changed"
        )


class NotAsShown(DeskError):
    """The state changed after it was shown, so the confirmation does not apply."""

    code = "not_as_shown"

    def __init__(self, confirmed: str, now: str) -> None:
        super().__init__(
            f"{confirmed[:12]} was confirmed, and it would be {now[:12]} now: the account, the "
            "session or the amounts have changed; nothing was changed, look at it again without "
            "--hash"
        )


def require_as_shown(confirmed: str, now: str) -> None:
    """Raise NotAsShown where another state was confirmed than there is now."""
    if confirmed != now:
        raise NotAsShown(confirmed, now)


class NotEnoughCash(DeskError):
    """The withdrawal is larger than the free cash."""

    code = "not_enough_cash"
    field = "amount"

    def __init__(self, account: str, amount: Decimal, free: Decimal, currency: str) -> None:
        super().__init__(
            f"{amount:,.2f} {currency} cannot be withdrawn from account {account}: {free:,.2f} is "
            "free, without cash reserved for open orders; withdraw less, or sell something first"
        )


class TooLarge(DeskError):
    """An account would be too large for the books."""

    code = "account_too_large"
    field = "amount"

    def __init__(self, account: str, after: Decimal, most: Decimal, currency: str) -> None:
        super().__init__(
            f"account {account} would have {after:,.2f} {currency} in cash; at most "
            f"{most:,.0f} can be kept"
        )


class AheadOfClock(DeskError):
    """The account has not reached this session yet."""

    code = "ahead_of_clock"

    def __init__(self, account: str, clock: date, as_of: date) -> None:
        super().__init__(
            f"account {account} is at {clock} and has not reached {as_of}: use a session up to its "
            "own, or leave it out; a cycle moves an account forward"
        )


class NoPrice(DeskError):
    """The market source has no prices at all for as_of, so holdings cannot be valued."""

    code = "no_price"

    def __init__(self, as_of: date, why: str) -> None:
        super().__init__(
            f"the market source has no prices of {as_of} at all, so the account cannot be brought "
            f"there ({why}); use a session that it has, or wait until this one is over"
        )


class NoExchangeRate(DeskError):
    """An amount cannot be converted into the account's currency."""

    code = "no_exchange_rate"

    def __init__(
        self, account: str, what: str, currency: str, into: str, on: date, unreadable: str = ""
    ) -> None:
        remedy = "add it to the market source (fx.csv of a replay directory)"
        why = unreadable or f"{no_rate(currency, into)} at {on}: {remedy}"
        super().__init__(f"account {account} is in {into}, {what} in {currency}, and {why}")


class CurrencyChanged(DeskError):
    """A held share now trades in another currency than at its purchase."""

    code = "currency_changed"

    def __init__(self, account: str, ticker: str, currency: str, on: date) -> None:
        super().__init__(
            f"account {account} holds {ticker} in another currency than {currency}, in which its "
            f"split or dividend of {on} is: correct the currency in the market source (sectors.csv "
            "of a replay directory)"
        )
