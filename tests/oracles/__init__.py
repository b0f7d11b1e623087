"""Other people's engines on the same prices and sides; see README.md."""
