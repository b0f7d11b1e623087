"""The form that asks for a cycle: what was typed, what is wrong with it, and the page."""
