"""The how-to for installing, typed as it is printed: a wheel from this clone, a backup of the embedded Postgres."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from headway import __version__
from headway.cli.local.data_dir import DataDir
from headway.store import migrate
from headway.store.embedded import ensure_postgres
from install.conftest import UV
from support.tree import ROOT

pytestmark = [pytest.mark.install, pytest.mark.timeout(1000)]

PAGE = (ROOT / "docs/how-to/install.md").read_text()


def block(holding: str) -> str:
    """The one example of the page that holds these words."""
    (found,) = (each for each in re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL) if holding in each)
    return "\n".join(line.strip() for line in found.splitlines())


def typed(script: str, *, cwd: Path) -> str:
    done = subprocess.run(["bash", "-ec", script], cwd=cwd, capture_output=True, text=True, check=False, timeout=800)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_is_called_as_the_page_says_and_brings_what_its_extra_needs(wheel: Path, tmp_path: Path) -> None:
    assert f"dist/{wheel.name}" in PAGE
    script = block("/opt/headway/bin/pip install")
    # With uv's cache in place of a download, and the interpreter of these tests in place of the machine's.
    script = script.replace("python3 -m venv", f"{UV} --quiet venv --python {sys.executable}")
    script = script.replace("/opt/headway/bin/pip install", f"{UV} --quiet pip install --python /opt/headway")
    script = script.replace(f"./{wheel.name}", str(wheel)).replace("/opt/headway", str(tmp_path / "headway"))
    assert typed(script, cwd=tmp_path) == f"headway {__version__}\n"
    shown = typed(f"{tmp_path}/headway/bin/headway get --help", cwd=tmp_path)
    assert "Usage: headway get" in shown


def test_the_recipe_that_the_page_names_builds_the_wheel() -> None:
    assert block("make wheel") == "make wheel"
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^wheel: .*\n\t.*uv .*build --wheel --out-dir dist", makefile, flags=re.MULTILINE)


@pytest.mark.parametrize("is_running", [True, False])
def test_a_backup_brings_the_embedded_postgres_back(tmp_path: Path, is_running: bool) -> None:
    layout = DataDir(tmp_path / ".headway")
    layout.create()
    for name in ("profiles.yaml", "host.toml"):
        (tmp_path / name).write_text("# as it was\n")
    (tmp_path / "backups").mkdir()
    programs = f"export PATH={Path(sys.executable).parent}:$PATH\n"
    back_up = programs + block("headway backup").replace("/backups/", str(tmp_path / "backups"))
    with running(layout) as url:
        migrate.upgrade(url)
        rows(url, "create table kept as select 1 as number")
        if is_running:
            typed(back_up, cwd=tmp_path)
    if not is_running:
        typed(back_up, cwd=tmp_path)
    with running(layout) as url:
        rows(url, "drop table kept")
    typed(programs + block("headway restore").replace("headway up", "true"), cwd=tmp_path)
    with running(layout) as url:
        assert rows(url, "select number from kept") == [(1,)]
    assert sorted(path.name for path in (tmp_path / "backups").iterdir()) == ["host.toml", "profiles.yaml"]


@contextmanager
def running(layout: DataDir) -> Iterator[str]:
    server = ensure_postgres(layout.postgres)
    try:
        yield server.url
    finally:
        assert server.wait_stopped(60)


def rows(url: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []
