"""A study's report, composed once: terminal, page and file only show it."""
