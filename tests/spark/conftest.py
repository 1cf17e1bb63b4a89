"""One session for all tests of Spark: starting a JVM takes longer than any of them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from headway.cli.roles import pipeline_prepare
from headway_spark import class_archive, session
from headway_spark.java import java_home
from headway_spark.stream import warm_up


@pytest.fixture(scope="session")
def archive() -> Path:
    """Spark's classes as `make classes` archived them; archived anew where that is missing or made by older code."""
    makers = [Path(each.__file__) for each in (pipeline_prepare, class_archive, session, warm_up)]
    jars = Path(pyspark.__file__).parent / "jars"
    made = class_archive.FILE
    if not made.exists() or made.stat().st_mtime < max(each.stat().st_mtime for each in (*makers, jars)):
        # Where it fails, its own test does; the others go without.
        subprocess.run([sys.executable, "-m", "headway", "pipeline", "prepare"], check=False, timeout=200)
    return made


@pytest.fixture(scope="session")
def classes_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Which class the session's JVM had from where, as it started."""
    return tmp_path_factory.mktemp("classes") / "classes.log"


@pytest.fixture(scope="session")
def spark(archive: Path, classes_log: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The pipeline's own session, with the quick compiler: tests end before the thorough one pays."""
    work_dir: Path = tmp_path_factory.mktemp("spark")
    started = session.embedded(
        java_home=java_home(os.environ, shim_dir=work_dir / "java"),
        work_dir=work_dir,
        jvm_options=f"-XX:TieredStopAtLevel=1 -Xlog:class+load:file={work_dir}/classes.log",
    )
    # A test that a timeout has ended amid a batch may leave a stream that never stops: that is a failure, not a hang.
    started.conf.set("spark.sql.streaming.stopTimeout", "60s")
    shutil.copy(work_dir / "classes.log", classes_log)
    yield started
    started.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for the session starts a JVM, which on a busy machine takes most of what a test has by default."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))
