"""One session for all tests of Spark: starting a JVM takes longer than any of them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headway_spark.java import java_home
from headway_spark.session import embedded


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The pipeline's own session, with the quick compiler: tests end before the thorough one pays."""
    work_dir: Path = tmp_path_factory.mktemp("spark")
    session = embedded(
        java_home=java_home(os.environ, shim_dir=work_dir / "java"),
        work_dir=work_dir,
        jvm_options="-XX:TieredStopAtLevel=1",
    )
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for the session starts a JVM, which on a busy machine takes most of what a test has by default."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))
