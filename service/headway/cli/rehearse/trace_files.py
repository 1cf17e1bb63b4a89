"""Recorded workloads out of CSV (plain or gzip) and Parquet files. The first mistake ends it, with its line."""

import csv
import gzip
import io
import math
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from headway.errors import Invalid, Misconfigured
from headway.simulate.workloads.jobs import Jobs

ARRIVAL_NAMES = ("t_arrival", "at_s")
SERVICE_NAMES = ("service_s",)
UNIX_S = (
    1e8  # a greater first arrival is a date, not seconds from a start: 1973 is before any trace, and years after any
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs to rehearse with, their name and when they begin by the clock (Unix seconds)."""

    name: str
    jobs: Jobs
    begins_at_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns hold arrivals and service times; ``None``: those of the usual names."""

    arrival: str | None = None
    service: str | None = None


def columns_of(text: str | None) -> Columns:
    """The columns that ``arrival,service`` names."""
    if text is None:
        return Columns()
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise Invalid(f"--columns={text!r} must name two columns, as in enqueued_at,duration_s")
    return Columns(arrival=names[0], service=names[1])


def read_trace(path: Path, columns: Columns) -> Workload:
    """The workload in the file at ``path``.

    Raises:
        Misconfigured: it cannot be read.
        Invalid: it holds no jobs, or something else than jobs in order of arrival.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        rows = _parquet(path, columns) if magic == b"PAR1" else _csv(path, columns, is_gzip=magic[:2] == b"\x1f\x8b")
        at_s, service_s = _checked(rows, path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Invalid(f"{path}: the gzip file is damaged: {error}") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is neither CSV nor Parquet: it is not text") from error
    except OSError as error:
        raise Misconfigured(f"trace {path} cannot be read: {error.strerror or error}") from error
    if not at_s:
        raise Invalid(f"{path} holds no jobs")
    begins_at_s = float(math.floor(at_s[0])) if at_s[0] >= UNIX_S else 0.0
    if begins_at_s:
        at_s = array("d", (each - begins_at_s for each in at_s))
    name = path.name.split(".")[0] or path.name
    return Workload(name=name, jobs=Jobs(at_s=at_s, service_s=service_s), begins_at_s=begins_at_s)


def _csv(path: Path, columns: Columns, *, is_gzip: bool) -> Iterator[tuple[str, Any, Any]]:
    """Where each row stands, its arrival and its service time."""
    with path.open("rb") as raw, _plain(raw, is_gzip=is_gzip) as text:
        reader = csv.reader(text)
        header = [cell.strip() for cell in next(reader, [])]
        if not header:
            raise Invalid(f"{path} is empty: expected a header and a row a job")
        arrival, service = _indexes(header, columns, path)
        try:
            for row in reader:
                if len(row) <= max(arrival, service):
                    if row:
                        raise Invalid(f"{path} line {reader.line_num}: {len(row)} cells, {len(header)} expected")
                    continue
                yield f"line {reader.line_num}", row[arrival], row[service]
        except csv.Error as error:
            raise Invalid(f"{path} line {reader.line_num}: is no CSV: {error}") from error


def _plain(raw: BinaryIO, *, is_gzip: bool) -> io.TextIOWrapper:
    data: Any = gzip.GzipFile(fileobj=raw) if is_gzip else raw
    return io.TextIOWrapper(data, encoding="utf-8-sig", newline="")


def _parquet(path: Path, columns: Columns) -> Iterator[tuple[str, Any, Any]]:
    pa, pq = _pyarrow(path)
    try:
        names = pq.read_schema(path).names
        arrival, service = _indexes(names, columns, path)
        table = pq.read_table(path, columns=[names[arrival], names[service]])
    except pa.ArrowException as error:
        raise Invalid(f"{path} is no Parquet: {str(error).splitlines()[0]}") from error
    arrivals, services = (_seconds(table.column(names[index]), pa) for index in (arrival, service))
    for number, (at_s, service_s) in enumerate(zip(arrivals, services, strict=True), start=1):
        yield f"row {number}", at_s, service_s


def _pyarrow(path: Path) -> tuple[Any, Any]:
    """pyarrow, by name: it is large, comes with other extras, and whoever has CSV does without."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise Misconfigured(
            f"{path} is Parquet, which needs pyarrow: pip install pyarrow, or give it as CSV"
        ) from error


def _seconds(column: Any, pa: Any) -> Sequence[Any]:
    """A column's values; moments and durations as seconds."""
    unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        per_s = unit[column.type.unit]
        return [None if value is None else value / per_s for value in column.cast(pa.int64()).to_pylist()]
    values: Sequence[Any] = column.to_pylist()
    return values


def _indexes(header: Sequence[str], columns: Columns, path: Path) -> tuple[int, int]:
    return (
        _index(header, (columns.arrival,) if columns.arrival else ARRIVAL_NAMES, path),
        _index(header, (columns.service,) if columns.service else SERVICE_NAMES, path),
    )


def _index(header: Sequence[str], names: Sequence[str], path: Path) -> int:
    for name in names:
        if name in header:
            return list(header).index(name)
    raise Invalid(
        f"{path} has no column {' or '.join(names)}; it has {', '.join(header)}: "
        "say which with --columns ARRIVAL,SERVICE"
    )


def _checked(rows: Iterable[tuple[str, Any, Any]], path: Path) -> "tuple[array[float], array[float]]":
    """Both columns as numbers: arrivals in order, service times not negative."""
    at_s, service_s = array("d"), array("d")
    last_s = 0.0
    for place, arrival, service in rows:
        try:
            arrives_s, serves_s = float(arrival), float(service)
        except (TypeError, ValueError):
            raise Invalid(f"{path} {place}: {arrival!r}, {service!r}: two numbers of seconds are expected") from None
        if not (last_s <= arrives_s < math.inf):
            what = f"arrives at {arrives_s:g} s, before {f'the job above ({last_s:g} s)' if at_s else 'the start'}"
            raise Invalid(f"{path} {place}: {what}; sort the file by arrival")
        if not (0 <= serves_s < math.inf):
            raise Invalid(f"{path} {place}: a service time of {serves_s:g} s; expected seconds from 0 on")
        at_s.append(arrives_s)
        service_s.append(serves_s)
        last_s = arrives_s
    return at_s, service_s
