"""Pages of one account: its books, how it did, and each ticker that it traded."""
