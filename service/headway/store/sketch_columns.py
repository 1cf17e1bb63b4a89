"""Sketches as rows of buckets and rollups keep them: JSON objects, index -> jobs."""

import json

SKETCHES = ("service_sketch", "pickup_sketch")


def sketch_of(text: str) -> dict[int, int]:
    """A sketch of its text; most are empty."""
    return {} if text == "{}" else {int(index): jobs for index, jobs in json.loads(text).items()}
