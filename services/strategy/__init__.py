"""Designs a strategy, trains its model, and backtests it on sessions that it has never seen.

For strategy cycles; a gate after training and one after the backtest say whether they go on.
"""
