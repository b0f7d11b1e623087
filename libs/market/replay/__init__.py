"""The replay source: recorded real prices, as they were known at each session's close."""
