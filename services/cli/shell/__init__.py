"""Shared parts of all commands: the terminal, the running desk, requests, problems."""
