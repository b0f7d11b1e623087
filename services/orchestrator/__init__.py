"""The orchestrator: moves every cycle through its states, for all services and all users.

It alone writes cycles, operations, journal and state_events, and it alone publishes commands.
"""
