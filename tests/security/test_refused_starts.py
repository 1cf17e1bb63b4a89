"""Roles that must not start as they are set up: by the command, as systemd would start them."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.attacked import PYTHON
from support.credential_files import token_file
from support.other_users import NOBODY, TAKES_THE_NAME
from support.ports import free_port
from support.waiting import eventually

pytestmark = pytest.mark.e2e

ENDS_IN_S = 60.0
MISCONFIGURED = 2
HOST_FILE = '[templates.t]\nargv = ["sleep", "600"]\n'
SECRET = "s3cret-of-this-test"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, too")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with what an agent needs, which other users can enter."""
    place = Path(tempfile.mkdtemp(prefix="headway-security-"))
    place.chmod(0o755)
    (place / "host.toml").write_text(HOST_FILE)
    (place / "state").mkdir(mode=0o700)
    yield place
    shutil.rmtree(place)


def environment(place: Path, **settings: str) -> Mapping[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")},
        "HEADWAY_CONTROL": f"127.0.0.1:{free_port()}",  # where nobody listens
        "HEADWAY_HOST_NAME": "a",
        "HEADWAY_HOST_FILE": str(place / "host.toml"),
        "HEADWAY_STATE_DIR": str(place / "state"),
        **settings,
    }


def refusal(place: Path, role: str, **settings: str) -> str:
    """What the role says as it refuses to start. Fails where it goes on."""
    done = subprocess.run(
        ["timeout", str(ENDS_IN_S), PYTHON, "-m", "headway", role],
        env=environment(place, **settings), cwd=place, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == MISCONFIGURED, (done.returncode, done.stderr[-2_000:])
    return done.stderr


def of_the_pipeline(place: Path) -> Mapping[str, str]:
    return {
        "HEADWAY_DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "HEADWAY_EVENT_LOG": str(place / "events"),
        "HEADWAY_CHECKPOINT": str(place / "checkpoint"),
    }


def test_a_host_file_that_anybody_may_write_decides_nothing(place: Path) -> None:
    (place / "host.toml").chmod(0o666)
    assert "can be written by others" in refusal(place, "agent")


def test_a_state_folder_that_anybody_may_write_holds_no_credential(place: Path) -> None:
    (place / "state").chmod(0o777)
    assert "can be written by others" in refusal(place, "agent")


@as_root
def test_a_state_folder_of_another_user_holds_no_credential(place: Path) -> None:
    os.chown(place / "state", NOBODY, NOBODY)
    assert f"belongs to uid {NOBODY}" in refusal(place, "agent")


@as_root
@pytest.mark.parametrize("role", ["collect", "pipeline"])
def test_a_state_folder_of_another_user_leads_no_role_to_other_files(place: Path, role: str) -> None:
    """Its owner put a link in the place of the lock: root's role cut off the file behind it, and wrote into that."""
    victim = place / "victim"
    victim.write_text("precious")
    (place / "state" / "lock").symlink_to(victim)
    os.chown(place / "state", NOBODY, NOBODY)
    said = refusal(place, role, HEADWAY_BROKERS="redis=redis://127.0.0.1:1/0", **of_the_pipeline(place))
    assert f"belongs to uid {NOBODY}" in said
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("role", ["collect", "pipeline"])
def test_a_link_in_the_place_of_a_lock_leads_nowhere(place: Path, role: str) -> None:
    victim = place / "victim"
    victim.write_text("precious")
    (place / "state" / "lock").symlink_to(victim)
    refusal(place, role, HEADWAY_BROKERS="redis=redis://127.0.0.1:1/0", **of_the_pipeline(place))
    assert victim.read_text() == "precious"


@as_root
def test_another_user_stops_no_agent_by_its_name(place: Path) -> None:
    given = environment(place)
    taker = [sys.executable, "-c", TAKES_THE_NAME, given["HEADWAY_CONTROL"], "a", "listens", str(NOBODY)]
    with subprocess.Popen(taker, stdout=subprocess.PIPE, text=True) as other, (place / "log").open("wb") as log:
        assert other.stdout is not None
        assert other.stdout.readline() == "taken\n"
        words = ["timeout", str(ENDS_IN_S), PYTHON, "-m", "headway", "agent"]
        with subprocess.Popen(words, env=given, cwd=place, stderr=log) as agent:
            try:
                # It has made its own records, and calls: it runs.
                eventually(lambda: agent.poll() is not None or "does not answer" in (place / "log").read_text())
                assert agent.poll() is None, (place / "log").read_text()[-2_000:]
            finally:
                agent.terminate()
                other.kill()


@pytest.mark.parametrize("token", ["a", "password12", "1234567890"])
def test_a_token_that_can_be_guessed_opens_no_control_plane(place: Path, token: str) -> None:
    file = token_file(place, token)
    said = refusal(place, "control", HEADWAY_DATABASE_URL="postgresql://127.0.0.1:1/none", HEADWAY_TOKEN_FILE=file)
    assert "HEADWAY_TOKEN can be guessed" in said


def test_a_broker_that_is_not_understood_is_not_repeated_in_the_journal(place: Path) -> None:
    said = refusal(place, "collect", HEADWAY_BROKERS=f"redis:redis://:{SECRET}@127.0.0.1:6379/0")
    assert "HEADWAY_BROKERS" in said
    assert SECRET not in said
