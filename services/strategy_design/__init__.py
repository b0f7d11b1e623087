"""Decides which strategy a strategy cycle tries: designs one, or takes a given one.

For training and backtest, which run exactly what it wrote, and for whoever reads the file.
"""
