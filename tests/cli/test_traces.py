"""Traces out of files, and the one line that each mistake in them is."""

import gzip
import sys
from pathlib import Path

import pytest

from headway.cli.rehearse.trace_files import Columns, columns_of, read_trace
from headway.cli.rehearse.workload_options import drawn, synthetic_of
from headway.errors import Invalid, Misconfigured
from headway.simulate.workloads.synthetic import Flash, Synthetic

CSV = "t_arrival,service_s\n0.5,2\n0.5,0\n3,1.25\n"


def file(folder: Path, content: str | bytes, name: str = "mail.csv") -> Path:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / name


@pytest.mark.parametrize(
    "content", [CSV, gzip.compress(CSV.encode(), mtime=0), "\ufeff" + CSV.replace("\n", "\r\n") + "\r\n"]
)
def test_a_csv_is_read_as_it_is_with_gzip_or_from_a_spreadsheet(tmp_path: Path, content: str | bytes) -> None:
    workload = read_trace(file(tmp_path, content), Columns())
    assert workload.name == "mail"
    assert (list(workload.jobs.at_s), list(workload.jobs.service_s)) == ([0.5, 0.5, 3.0], [2.0, 0.0, 1.25])
    assert workload.begins_at_s == 0


def test_columns_may_have_other_names_and_dates_become_seconds_from_the_start(tmp_path: Path) -> None:
    path = file(tmp_path, "id,took,enqueued_at\na,2,1800000000.5\nb,3,1800000004\n")
    workload = read_trace(path, columns_of("enqueued_at, took"))
    assert (workload.name, workload.begins_at_s) == ("mail", 1_800_000_000.0)
    assert (list(workload.jobs.at_s), list(workload.jobs.service_s)) == ([0.5, 4.0], [2.0, 3.0])


def test_parquet_is_read_with_numbers_and_with_moments(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"at_s": [0.0, 1.5], "service_s": [2, 3]}), tmp_path / "numbers.parquet")
    assert list(read_trace(tmp_path / "numbers.parquet", Columns()).jobs.at_s) == [0.0, 1.5]
    moments = {
        "at_s": pa.array([1_800_000_000_000, 1_800_000_001_500], pa.timestamp("ms")),
        "service_s": pa.array([250, 500], pa.duration("ms")),
    }
    pq.write_table(pa.table(moments), tmp_path / "moments.parquet")
    workload = read_trace(tmp_path / "moments.parquet", Columns())
    assert (list(workload.jobs.at_s), list(workload.jobs.service_s)) == ([0.0, 1.5], [0.25, 0.5])


def test_without_pyarrow_only_parquet_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert len(read_trace(file(tmp_path, CSV), Columns()).jobs) == 3
    with pytest.raises(Misconfigured, match="is Parquet, which needs pyarrow: pip install pyarrow, or give it as CSV"):
        read_trace(file(tmp_path, b"PAR1", "mail.parquet"), Columns())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty: expected a header and a row a job"),
        ("t_arrival,service_s\n", "holds no jobs"),
        ("a,b\n1,2\n", "has no column t_arrival or at_s; it has a, b: say which with --columns ARRIVAL,SERVICE"),
        ("t_arrival,service_s\n1\n", "line 2: 1 cells, 2 expected"),
        ("t_arrival,service_s\n1,soon\n", "line 2: '1', 'soon': two numbers of seconds are expected"),
        (
            "t_arrival,service_s\n5,1\n3,1\n",
            "line 3: arrives at 3 s, before the job above (5 s); sort the file by arrival",
        ),
        ("t_arrival,service_s\n-1,1\n", "line 2: arrives at -1 s, before the start"),
        ("t_arrival,service_s\nnan,1\n", "line 2: arrives at nan s"),
        ("t_arrival,service_s\n1,-2\n", "line 2: a service time of -2 s; expected seconds from 0 on"),
        (b"\x00\xff\xfe\x80", "is neither CSV nor Parquet"),
        (gzip.compress(CSV.encode(), mtime=0)[:20], "the gzip file is damaged"),
        (b"PAR1 and no more", "is no Parquet"),
    ],
)
def test_a_mistake_is_one_line_that_says_where(tmp_path: Path, content: str | bytes, says: str) -> None:
    path = file(tmp_path, content)
    with pytest.raises(Invalid) as refusal:
        read_trace(path, Columns())
    assert str(refusal.value).startswith(str(path))
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"gone\.csv cannot be read: No such file"):
        read_trace(tmp_path / "gone.csv", Columns())
    with pytest.raises(Misconfigured, match="cannot be read: Is a directory"):
        read_trace(tmp_path, Columns())


def test_a_workload_is_drawn_as_it_is_written() -> None:
    workload = synthetic_of("flash:rate=2,peak=40,at=30m,service=300ms,tail=pareto,for=1h,seed=7")
    assert workload == Synthetic(
        arrivals=Flash(rate_per_s=2.0, peak=40.0, at_s=1800.0), service_s=0.3, tail="pareto", for_s=3600.0, seed=7
    )
    assert synthetic_of("poisson") == Synthetic()
    assert len(drawn("cron:jobs=3,every=60s,for=2m").jobs) == 6
    assert drawn("metronome").name == "metronome"
    assert drawn("metronome:seed=2").jobs.at_s != drawn("metronome").jobs.at_s


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("flush", "no kind 'flush'; known: poisson, diurnal, flash, onoff, cron, square, weekly, blips_and_blocks"),
        ("metronome:every=60s", "--synthetic metronome: no key 'every'; a named load takes seed only"),
        ("cron:rate=2", "no key 'rate'; known: jobs, every, within, service, tail, for, seed"),
        ("poisson:rate=fast,seed=one", "rate='fast' is no number, as in 250000, 250k or 1M; --synthetic poisson: seed"),
        ("poisson:rate=0", "rate_per_s=0 must be above 0"),
        ("poisson:rate=0.001,for=1s", "draws no job"),
        (
            "poisson:service=2,for=10",
            "service='2' has no unit: 2s, 2m or 2h; --synthetic poisson: for='10' has no unit",
        ),
    ],
)
def test_a_workload_that_cannot_be_drawn_is_refused(text: str, says: str) -> None:
    with pytest.raises(Invalid) as refusal:
        drawn(text)
    assert says in str(refusal.value)


def test_columns_are_two_names() -> None:
    with pytest.raises(Invalid, match="must name two columns"):
        columns_of("one")
