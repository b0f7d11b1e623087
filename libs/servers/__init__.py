"""NATS and Postgres as children of a process: found, started, watched, stopped."""
