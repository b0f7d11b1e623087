"""The SEC's EDGAR as a live source: filings as dated events, and the figures that they reported."""
