"""Reading replies: tolerant about form, strict about values (docs/providers.md)."""
