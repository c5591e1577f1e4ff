"""The version of the kit. The build reads it here, so it has one place."""

__version__ = "0.1.0"
