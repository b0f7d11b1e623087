"""Lets models of other programs look at the desk over MCP, for whoever runs `deskbus mcp`.

It decides nothing and holds nothing: market data is read, and the desk is asked over NATS.
"""
