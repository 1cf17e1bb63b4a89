"""`headway init --import-app`: the application says its queues itself, imported by its own Python, bounded in time.

Root imports nobody else's code.
"""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from headway.cli.profiles_file import load_profiles_file
from headway.cli.setup.app_import import imported, refuse_others_code
from headway.cli.setup.source.celery_apps import CeleryApp
from headway.errors import Misconfigured
from support.called import Called, called
from support.other_users import NOBODY
from support.waiting import eventually

pytestmark = pytest.mark.e2e

APP = """
from celery import Celery

print("a line that is no answer")
app = Celery("shop", broker="redis://127.0.0.1:1/0")
app.conf.task_routes = {"tasks." + name: {"queue": name + "s"} for name in ("bill", "letter")}


@app.task
def bill():
    pass


@app.task
def letter():
    pass


@app.task(queue="parcels")
def parcel():
    pass
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """An application whose routes code makes, with a Python of its own that notes each start."""
    folder = tmp_path / "shop"
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / "tasks.py").write_text(APP)
    python = folder / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\ntouch {tmp_path}/started\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder


def initialised(folder: Path, broker: str, *words: str) -> Called:
    env = {**os.environ, "CELERY_BROKER_URL": broker}
    return called("init", "--broker", broker, *words, folder=folder, env=env)


def of_celery(valkey_url: str) -> str:
    return valkey_url.replace("unix://", "redis+socket://").replace("db=", "virtual_host=")


def app_in(folder: Path) -> CeleryApp:
    return CeleryApp(app="tasks:app", folder=folder, file=folder / "tasks.py")


def test_routes_that_code_makes_are_read_by_import_and_only_then(shop: Path, valkey_url: str, tmp_path: Path) -> None:
    done = initialised(shop, of_celery(valkey_url))
    assert done.returncode == 0, done.stderr
    sentence = f"routes of tasks:app were not read, where code makes them ({shop}/tasks.py, line 6): add --import-app"
    assert sentence in done.stdout
    assert not (tmp_path / "started").exists()

    done = initialised(shop, of_celery(valkey_url), "--import-app", "--force")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "started").exists()
    assert "routes of" not in done.stdout
    found = {profile.queues for profile in load_profiles_file(shop / "profiles.yaml").profiles}
    assert found == {("celery/bills",), ("celery/letters",), ("celery/parcels",)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise RuntimeError('no database')", "cannot import tasks:app: RuntimeError: no database"),
        ("import sys\nsys.exit(0)", "tasks:app gave no answer: its module ends the process"),
        ("other = 1", "cannot import tasks:app: AttributeError"),
    ],
)
def test_an_application_that_cannot_be_imported_is_one_sentence(
    shop: Path, valkey_url: str, text: str, why: str
) -> None:
    (shop / "tasks.py").write_text(text)
    done = initialised(shop, of_celery(valkey_url), "--import-app", "tasks:app")
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path.name for path in shop.iterdir()} - {"__pycache__"} == {".venv", "tasks.py"}


def test_an_import_that_never_ends_is_ended_with_all_that_it_started(shop: Path) -> None:
    (shop / "tasks.py").write_text(
        "import pathlib, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "pathlib.Path('child').write_text(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    since_s = time.monotonic()
    with pytest.raises(Misconfigured, match=r"tasks:app was not imported within 5 s"):
        imported(app_in(shop), Path(sys.executable), environment=os.environ, within_s=5.0)
    assert time.monotonic() - since_s < 60.0
    child = int((shop / "child").read_text())
    eventually(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE)


def test_root_does_not_run_the_code_of_another_user(
    shop: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [shop / "tasks.py"]
    if os.geteuid() != 0:
        refuse_others_code(files)  # which is one's own
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        with pytest.raises(Misconfigured, match="whose code root does not run"):
            refuse_others_code(files)
        return
    os.chown(shop / "tasks.py", NOBODY, NOBODY)
    done = initialised(shop, of_celery(valkey_url), "--import-app")
    assert done.returncode == 2
    assert f"--import-app: {shop}/tasks.py belongs to user {NOBODY}, whose code root does not run" in done.stderr
    assert not (shop.parent / "started").exists()


def test_a_folder_without_an_application_is_refused(tmp_path: Path, valkey_url: str) -> None:
    done = initialised(tmp_path, valkey_url, "--import-app")
    assert done.returncode == 2
    assert "--import-app: no Celery application was found here" in done.stderr


def test_an_application_says_its_broker_and_the_queues_that_it_declares(shop: Path) -> None:
    (shop / "tasks.py").write_text(
        "from celery import Celery\nfrom kombu import Queue\n\napp = Celery('shop')\n"
        "app.conf.update(broker_url='redis://h/3', task_queues=[Queue(n) for n in 'ab'], task_default_queue='a')\n"
    )
    environment: Mapping[str, str] = {name: each for name, each in os.environ.items() if not name.endswith("_URL")}
    found = imported(app_in(shop), Path(sys.executable), environment=environment)
    assert (found.queues, found.broker) == (("a", "b"), "redis://h/3")
    assert "redis" not in repr(found)
