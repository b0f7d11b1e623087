"""The notifier: tells people what happened, by rules, over the channels that they chose.

It decides what is due to whom. The orchestrator remembers it; nothing is kept here.
"""
