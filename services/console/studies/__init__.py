"""Studies scored from the record: what is read, and the process that computes."""
