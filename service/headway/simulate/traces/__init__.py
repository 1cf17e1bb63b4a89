"""Recorded workloads carried in the package; ``ATTRIBUTION.md`` beside this file says whose they are."""

import csv
import gzip
from importlib.resources import files

from headway.simulate.replay import RecordedJob

BURSTY_LLM_CODE = "bursty_llm_code"
DAY_FLIGHTS = "day_flights"
DAY_TWEETS = "day_tweets"


def load(name: str, *, keeps_quiet: bool = False) -> tuple[RecordedJob, ...]:
    """The jobs of the trace ``name`` in order of arrival.

    The first is at 0 s, without the quiet before it; with ``keeps_quiet`` all times are as recorded.
    """
    packed = files(__name__).joinpath(f"{name}.csv.gz").read_bytes()
    rows = csv.DictReader(gzip.decompress(packed).decode().splitlines())
    jobs = [(float(row["t_arrival"]), float(row["service_s"])) for row in rows]
    first_s = 0.0 if keeps_quiet else jobs[0][0]
    return tuple(RecordedJob(at_s=at_s - first_s, service_s=service_s) for at_s, service_s in jobs)
