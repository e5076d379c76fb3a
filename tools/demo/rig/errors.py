"""The one error of the rig: a full sentence for the person who runs it."""


class DemoError(Exception):
    """What failed, where, what is allowed, what to do: one line."""
