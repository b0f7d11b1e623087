"""One group of inputs, folded into rows under their locks: requests, claims, results."""
