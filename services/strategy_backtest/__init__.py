"""Decides what a trained strategy would have come to on sessions that it has never seen.

For the backtest gate, and for whoever assesses the strategy.
"""
