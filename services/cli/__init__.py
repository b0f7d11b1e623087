"""The command line: how a person starts the desk, asks for cycles and sees what was decided.

It decides nothing; whatever it shows it has asked the running desk for.
"""
