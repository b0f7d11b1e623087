"""Decides what to propose for buying and selling.

For risk, which may only cut it; nothing here can place an order.
"""
