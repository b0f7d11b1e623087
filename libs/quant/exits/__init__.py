"""The exit rules: their terms, what they look at, and what each of them finds. Pure."""
