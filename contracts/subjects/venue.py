"""An account at a broker: bound, reconciled, and its orders there.

Whoever moves an owner's money may bind and reconcile: the desk's own command line alone. A cancel
only makes less of what is wanted, so any person may ask for it.
"""

from contracts.subjects.subject import CLI, REQUESTERS, USERS, Class, Subject
from contracts.venue import (
    BindAccount,
    Binding,
    CancelAnswer,
    CancelOrder,
    ReconcileAccount,
    Reconciled,
    VenueOrders,
    VenueOrdersQuery,
    VenueQuery,
    VenueStanding,
)

BIND = Subject(Class.REQUEST, "execution", "bind", BindAccount, Binding, (CLI,))
RECONCILE = Subject(Class.REQUEST, "execution", "reconcile", ReconcileAccount, Reconciled, (CLI,))
CANCEL_ORDER = Subject(
    Class.REQUEST, "execution", "cancel_order", CancelOrder, CancelAnswer, REQUESTERS
)
VENUE_ORDERS = Subject(
    Class.QUERY, "execution", "venue_orders", VenueOrdersQuery, VenueOrders, USERS
)
VENUE = Subject(Class.QUERY, "execution", "venue", VenueQuery, VenueStanding, USERS)
