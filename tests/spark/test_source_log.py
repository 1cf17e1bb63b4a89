"""The checkpoint's list of files stays short, and says the same as before."""

import json
from pathlib import Path

import pytest

from headway_spark.stream import source_log

NEWEST_S = 1_000_000.0


def listed(checkpoint: Path, name: str, *ages_s: float) -> Path:
    """The list ``name`` with a file of each age, as Spark writes it."""
    path = checkpoint / "sources" / "0" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"path": f"file:///{age_s}", "timestamp": int(1000 * (NEWEST_S - age_s)), "batchId": batch})
        for batch, age_s in enumerate(ages_s)
    ]
    path.write_text("\n".join(["v1", *lines]))
    path.with_name(f".{name}.crc").write_bytes(b"crc")
    return path


def ages_s(path: Path) -> list[float]:
    version, *lines = path.read_text().splitlines()
    assert version == "v1"
    return [NEWEST_S - json.loads(line)["timestamp"] / 1000 for line in lines]


def test_only_files_that_spark_still_heeds_stay(tmp_path: Path) -> None:
    path = listed(tmp_path, "99.compact", 3 * source_log.KEPT_S, source_log.KEPT_S + 1, source_log.KEPT_S - 1, 0.0)
    source_log.trim(tmp_path)
    assert ages_s(path) == [source_log.KEPT_S - 1, 0.0]
    assert not path.with_name(".99.compact.crc").exists()  # it would be that of the longer list


def test_the_newest_list_is_the_one_that_counts(tmp_path: Path) -> None:
    old = listed(tmp_path, "99.compact", 2 * source_log.KEPT_S, 0.0)
    new = listed(tmp_path, "149.compact", 2 * source_log.KEPT_S, 0.0)
    source_log.trim(tmp_path)
    assert (len(ages_s(old)), len(ages_s(new))) == (2, 1)


@pytest.mark.parametrize("text", ["", "v1\nnonsense", 'v1\n{"path": "no time"}'])
def test_a_list_that_cannot_be_read_is_left_for_spark_to_complain_of(tmp_path: Path, text: str) -> None:
    path = listed(tmp_path, "99.compact", 0.0)
    path.write_text(text)
    source_log.trim(tmp_path)
    assert path.read_text() == text


def test_a_new_checkpoint_has_no_list(tmp_path: Path) -> None:
    source_log.trim(tmp_path / "none")
    assert not source_log.is_long(tmp_path / "none")


def test_a_list_is_long_from_some_megabytes(tmp_path: Path) -> None:
    path = listed(tmp_path, "99.compact", 0.0)
    assert not source_log.is_long(tmp_path)
    path.write_bytes(b"x" * (source_log.SOURCE_LOG_LONG_BYTES + 1))
    assert source_log.is_long(tmp_path)
