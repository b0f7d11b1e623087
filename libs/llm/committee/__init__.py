"""The scripted provider of `deskbus demo`: it answers in a model's place, and is none."""
