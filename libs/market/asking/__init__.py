"""How live sources are asked: pace over processes, retries, rest after refusals, answers kept."""
