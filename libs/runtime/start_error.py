"""The one base of errors that mean: this machine can't run what was asked for, as things are."""


class StartError(RuntimeError):
    """Something could not be started or kept running; the text says what, where and what to do."""
