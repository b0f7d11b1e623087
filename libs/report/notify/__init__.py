"""Messages to people over channels, and how those fare."""
