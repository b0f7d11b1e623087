"""Answers what people ask of the desk, for the CLI and anyone's own program.

It reads, as a role that may only select, and decides nothing.
"""
