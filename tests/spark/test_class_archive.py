"""Archived classes: used where they can be trusted, made by one command, passed over where they do not fit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.cli.roles.pipeline_prepare import prepare
from headway.errors import Misconfigured
from headway_spark import class_archive
from headway_spark.java import java_home

_START = """
import os, sys
from pathlib import Path
from headway_spark import class_archive
from headway_spark.java import java_home
from headway_spark.session import close, embedded
folder, archive = map(Path, sys.argv[1:])
session = embedded(
    java_home=java_home(os.environ, shim_dir=folder / "java"),
    work_dir=folder,
    classes=class_archive.used(archive),
    jvm_options=f"-Xlog:class+load:file={folder}/classes.log",
)
assert session.range(3).count() == 3
close(session)
"""
_MAKE = """
import sys
from pathlib import Path
from headway.cli.roles.pipeline_prepare import prepare
prepare(Path(sys.argv[1]))
"""


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


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_session_takes_sparks_classes_from_the_archive_that_was_made(tmp_path: Path) -> None:
    archive = tmp_path / "share" / "classes.jsa"
    env = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}  # it ends before the thorough compiler pays
    subprocess.run([sys.executable, "-c", _MAKE, archive], env=env, check=True, timeout=200, capture_output=True)
    assert [each.name for each in archive.parent.iterdir()] == ["classes.jsa"]
    words = [sys.executable, "-c", _START, tmp_path, archive]
    subprocess.run(words, env=env, check=True, timeout=100, capture_output=True)
    spark = [line for line in (tmp_path / "classes.log").read_text().splitlines() if " org.apache.spark." in line]
    archived = [line for line in spark if "shared objects file" in line]
    assert len(archived) > len(spark) / 2 > 1_000  # the others are made as it runs
