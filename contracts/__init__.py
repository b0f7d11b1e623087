"""WHAT is said on the bus: frozen Pydantic models and the table of subjects."""
