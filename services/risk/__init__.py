"""Risk: reviews the trader's picks with a model, then judges and sizes them by rules in code.

Its word binds execution, which runs the same rules again.
"""
