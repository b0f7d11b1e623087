"""Decides what a cycle looks into, and what the quant and the analyst found there.

For the trader, who picks from it, and for risk, which takes it as evidence.
"""
