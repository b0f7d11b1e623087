"""HOW the desk talks to models: one provider interface, one loop, the offline rules provider."""
