"""Market data: one Protocol, its sources, the exchange calendar and the tools over them."""
