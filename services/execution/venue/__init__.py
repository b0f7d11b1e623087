"""Orders at a broker: sent once, looked after until they are over, and both books compared."""
