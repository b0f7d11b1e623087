"""Decides what a strategy's model is worth before any of it is traded.

For the backtest, which runs the model, and for the training gate.
"""
