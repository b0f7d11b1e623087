"""Capital of an account's owner: holdings of before, deposits, withdrawals."""
