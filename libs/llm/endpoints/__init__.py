"""Model endpoints: their wire formats, keys, prices, and what their refusals mean."""
