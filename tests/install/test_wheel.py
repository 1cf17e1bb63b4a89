"""The wheel carries what its roles read at run time, and nothing that is ours alone."""

import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import parse_email
from packaging.requirements import Requirement

from support.tree import ROOT, SERVICE

pytestmark = [pytest.mark.install, pytest.mark.timeout(1000)]


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize(
    "name",
    [
        "headway/py.typed",
        "headway_spark/py.typed",
        "headway_spark/submit.py",
        "headway/simulate/traces/bursty_llm_code.csv.gz",
        "headway/simulate/traces/day_flights.csv.gz",
        "headway/simulate/traces/day_tweets.csv.gz",
        "headway/simulate/traces/ATTRIBUTION.md",
        "headway/simulate/report/style.css",
        "headway/store/migrations/env.py",
        "headway/control/web/index.html",
        "headway/client/v1/api/queues/list_pools.py",
        "headway/client/v1/models/problem.py",
        "headway/workers/celery_reporter/headway_celery_reporter.py",
    ],
)
def test_the_wheel_carries(names: set[str], name: str) -> None:
    assert name in names


def test_every_migration_and_every_file_of_the_dashboard_is_in_the_wheel(names: set[str]) -> None:
    versions = {
        f"headway/store/migrations/versions/{path.name}" for path in (ROOT / "migrations/versions").glob("*.py")
    }
    web = {
        f"headway/{path.relative_to(SERVICE)}" for path in (SERVICE / "control" / "web").rglob("*") if path.is_file()
    }
    assert versions
    assert web
    assert sorted((versions | web) - names) == []


def test_the_licence_travels_with_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("licenses/LICENSE"))
        assert archive.read(name).decode() == (ROOT / "LICENSE").read_text()
        assert "Apache License" in archive.read(name).decode()


def test_the_wheel_asks_for_what_pyproject_says(wheel: Path) -> None:
    """Of each extra, so that installing from uv.lock, as the tests do, brings what a user gets."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        asked, _ = parse_email(archive.read(name))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra in ("", *project["optional-dependencies"]):
        given = project["optional-dependencies"].get(extra, project["dependencies"])
        required = [Requirement(line) for line in asked["requires_dist"]]
        own = [one for one in required if (f'extra == "{extra}"' if extra else "extra ==") in str(one.marker)]
        found = own if extra else [one for one in required if one not in own]
        assert {(one.name, str(one.specifier)) for one in found} >= {
            (one.name, str(one.specifier)) for one in map(Requirement, given) if one.name != "headway"
        }


def test_only_two_names_reach_site_packages(names: set[str]) -> None:
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"headway", "headway_spark"}
    assert not [name for name in names if re.search(r"(^|/)(test_|tests/|conftest)|\.(proto|pyc)$", name)]
