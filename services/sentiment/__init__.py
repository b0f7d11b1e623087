"""Decides which tickers a cycle talks about, and how they are spoken of.

For the pipelines of one cycle, which share its digest.
"""
