"""What people are told over channels, and how those fare."""
