"""The accounts' books, read across accounts and trades."""
