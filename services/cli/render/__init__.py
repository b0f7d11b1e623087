"""What people are shown of a cycle, an account, a strategy, drawn for a terminal."""
