"""Kinds of options that benchmarks share."""

import argparse


def positive_count(text: str) -> int:
    """A whole number, at least 1: of nothing there are no figures."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1, not {number}")
    return number
