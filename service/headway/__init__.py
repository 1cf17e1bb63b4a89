"""Headway keeps the objective "a job in this queue starts within N seconds" with as few workers as that takes."""

__version__ = "0.1.0"
