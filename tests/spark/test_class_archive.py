"""Archived classes: used where they can be trusted, made by one command, passed over where they do not fit."""

import os
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headway.cli.roles.pipeline_prepare import prepare
from headway.errors import Misconfigured
from headway_spark import class_archive
from headway_spark.java import java_home


def test_without_an_archive_the_java_gets_no_options(tmp_path: Path) -> None:
    assert class_archive.used(tmp_path / "none.jsa") == ""


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_what_others_may_write_is_not_used(tmp_path: Path, mode: int) -> None:
    """Classes run as the pipeline's user."""
    archive = tmp_path / "classes.jsa"
    archive.write_bytes(b"")
    archive.chmod(0o644)
    assert str(archive) in class_archive.used(archive)
    archive.chmod(mode)
    assert class_archive.used(archive) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_another_user_is_not_used(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    archive.write_bytes(b"")
    archive.chmod(0o644)
    os.chown(archive, 65534, 65534)
    assert class_archive.used(archive) == ""


def test_what_fits_no_java_is_passed_over_without_a_word(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    archive.write_bytes(os.urandom(5_000))
    archive.chmod(0o644)
    program = java_home(os.environ, shim_dir=tmp_path / "java") / "bin" / "java"
    words = [word.strip('"') for word in class_archive.used(archive).split()]
    found = subprocess.run([program, *words, "-version"], capture_output=True, text=True, timeout=60, check=True)
    assert "cds" not in found.stdout + found.stderr


def test_where_it_cannot_be_written_one_sentence_says_whom_to_ask(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="as the user that installed Headway"):
        prepare(tmp_path / "file" / "classes.jsa")


def test_a_session_takes_sparks_classes_from_the_archive_that_was_made(
    archive: Path, classes_log: Path, spark: SparkSession
) -> None:
    assert [each.name for each in archive.parent.iterdir()] == [archive.name]
    loaded = [line for line in classes_log.read_text().splitlines() if " org.apache.spark." in line]
    archived = [line for line in loaded if "shared objects file" in line]
    # The others are made as it runs.
    assert len(archived) > len(loaded) / 2 > 1_000, "`make classes` makes one that fits"
