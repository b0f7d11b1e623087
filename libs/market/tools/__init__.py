"""The tools over market data that models may call."""
