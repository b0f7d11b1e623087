"""Execution: places what was validated, once, and keeps the books, for every account.

No model reaches it; orders come from nowhere else.
"""
