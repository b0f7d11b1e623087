"""What each dashboard shows, as a table."""
