"""The live tail: every event to many readers, without loss or repeat."""
