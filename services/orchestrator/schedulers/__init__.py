"""The clocks: the schedule, the relay of events, the sweep for what is late."""
