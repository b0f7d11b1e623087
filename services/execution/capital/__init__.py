"""What an account's owner brings in and takes out: holdings of before, deposits, withdrawals."""
