"""Recorded workloads carried in the package; ``ATTRIBUTION.md`` beside this file says whose they are."""

import csv
import gzip
from importlib.resources import files

from headway.simulate.replay import RecordedJob

BURSTY_LLM_CODE = "bursty_llm_code"


def load(name: str) -> tuple[RecordedJob, ...]:
    """The jobs of the trace ``name`` in order of arrival, the first at 0 s: the quiet before it is left out."""
    packed = files(__name__).joinpath(f"{name}.csv.gz").read_bytes()
    rows = csv.DictReader(gzip.decompress(packed).decode().splitlines())
    jobs = [(float(row["t_arrival"]), float(row["service_s"])) for row in rows]
    first_s = jobs[0][0]
    return tuple(RecordedJob(at_s=at_s - first_s, service_s=service_s) for at_s, service_s in jobs)
