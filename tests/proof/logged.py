"""The event log under a storm: hours to be merged meanwhile, and whether each row is in it once."""

import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headway.scaling.model.event_row import SCHEMA_VERSION
from headway.store.events.event_files import SCHEMA
from headway_spark.event_log.log_files import HOUR_S, files
from proof.producers import Ledger

FIRST_AGE_HOURS = 3  # over for longer than the pipeline waits before it merges
ROWS = 20  # of a file
PAST = "past"
SHOWN_MAX = 20


def put_past(event_log: Path, *, hours: int, files_an_hour: int) -> None:
    """Hours of files that were read long ago, which the pipeline merges as soon as it runs."""
    for age_hours in range(FIRST_AGE_HOURS, FIRST_AGE_HOURS + hours):
        hour_s = (int(time.time()) // HOUR_S - age_hours) * HOUR_S
        part = event_log / "archive" / f"{hour_s:010d}-000"
        part.mkdir(parents=True)
        for number in range(files_an_hour):
            row = {
                "schema_version": SCHEMA_VERSION,
                "queue": "proof/past",
                "kind": "enqueued",
                "at_s": hour_s + number,
                "received_at_s": hour_s + number,
                "producer": f"{PAST}-{hour_s}",
                "sequence": number,
            }
            name = f"{hour_s * 1000 + number:013d}-{'0' * 12}-{number:06d}.parquet"
            pq.write_table(pa.Table.from_pylist([row] * ROWS, schema=SCHEMA), part / name)


def merged_hours(event_log: Path) -> int:
    """How many of them are one file by now."""
    return len(list((event_log / "archive").glob("*.parquet")))


def log_differences(event_log: Path, ledgers: Iterable[Ledger], *, past_files: int) -> list[str]:
    """Batches of which the log has not exactly the rows it should: what was given up is there wholly or not at all."""
    found: Counter[tuple[str, int]] = Counter()
    for path in files(event_log):
        table = pq.read_table(path, columns=["producer", "sequence"])
        found.update(zip(table["producer"].to_pylist(), table["sequence"].to_pylist(), strict=True))
    past = {key: found.pop(key) for key in list(found) if key[0].startswith(PAST)}
    lines = [f"{key}: {rows} rows, not {ROWS}" for key, rows in past.items() if rows != ROWS]
    if len(past) != past_files:
        lines.append(f"{len(past)} files of the past, not {past_files}")
    for ledger in ledgers:
        for batch in (*ledger.answered, *ledger.abandoned):
            rows, right = found.pop((batch.producer, batch.sequence), 0), len(batch.events) + len(batch.samples)
            if rows != right and not (rows == 0 and batch in ledger.abandoned):
                lines.append(f"{batch.producer} {batch.sequence}: {rows} rows, not {right}")
    return [*lines, *(f"{key}: {rows} rows that nobody sent" for key, rows in found.items())][:SHOWN_MAX]
