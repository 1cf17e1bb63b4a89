"""Variables from a file that a template names: what a line may be, who may own the file, and starts of real workers."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.agent.config.environment_file import FILE_BYTES_MAX, UnusableEnvironmentFile, variables_of
from headway.agent.config.templates import Ready, Template
from headway.agent.workers.starts.start_failures import StartFailures
from headway.local import procfs
from headway.scaling.model import StartFailure, WorkerState
from support.other_users import NOBODY
from support.waiting import eventually
from support.workers import SLEEP, Stage, reconcile_until, start, states, template

MISSING, UNSAFE = StartFailure.ENVIRONMENT_FILE_MISSING, StartFailure.ENVIRONMENT_FILE_UNSAFE
INVALID = StartFailure.ENVIRONMENT_FILE_INVALID
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, too")


def written(folder: Path, text: str | bytes, *, mode: int = 0o600) -> Template:
    """A template with this file of variables."""
    path = folder / "mail.env"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return template(environment_file=str(path))


def refusal(given: Template) -> tuple[StartFailure, str]:
    """The cause, and the sentence behind the path."""
    with pytest.raises(UnusableEnvironmentFile) as refused:
        variables_of(given)
    said = str(refused.value)
    start = f"template 'py': environment_file {given.environment_file} "
    assert said.startswith(start)
    return refused.value.cause, said.removeprefix(start)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("A=", ""),
        ("A=''", ""),
        ("A=b c  ", "b c"),
        ("\tA=b\r", "b"),
        ("export A=b", "b"),
        ("A=postgres://u:p$x@h/d?a=1&b=2#c", "postgres://u:p$x@h/d?a=1&b=2#c"),
        ("A='${B} $C \"d\" #'", '${B} $C "d" #'),
        (r'A="it\'s"', None),
        ('A="it\'s $B #"', "it's $B #"),
        (r'A="a\"b\\c"', 'a"b\\c'),
        ("A=ü", "ü"),
        # systemd and dotenv do not read these alike
        ("A=b #c", None),
        ("A=b'c", None),
        ("A=b\\c", None),
        ("A=${B}", None),
        ('A="${B}"', None),
        ('A="a\\nb"', None),
        ("A='a\\b'", None),
        ("A='a", None),
        ("A='a'b", None),
        ("A= b", None),
    ],
)
def test_a_value_has_one_meaning_or_is_refused(tmp_path: Path, line: str, value: str | None) -> None:
    made = written(tmp_path, f"# remark\n\n; another\n{line}\n")
    if value is not None:
        assert variables_of(made) == {"A": value}
        return
    cause, why = refusal(made)
    assert cause is INVALID
    assert why.startswith("line 4 has a value that programs read differently: put it in single quotes")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A=1\ns3cret", "line 2 is not NAME=value, without spaces around the '='"),
        ("s3cret = 1", "line 1 is not NAME=value, without spaces around the '='"),
        ("1s3cret=1", "line 1 is not NAME=value, without spaces around the '='"),
        ("A=s3\0cret", "line 1 is not NAME=value, without spaces around the '='"),
        (b"A=\xffs3cret", "line 1 is not UTF-8"),
        ("A=s3cret\nB=1\nexport A=s3cret", "line 3 sets the variable of line 1 again"),
        ("HEADWAY_WORKER_ID=s3cret", "line 1 sets a variable that is the agent's own mark"),
        ("A=" + "s3cret" * FILE_BYTES_MAX, "has more than 64 KB"),
    ],
)
def test_a_mistake_is_one_sentence_without_the_content(tmp_path: Path, text: str | bytes, why: str) -> None:
    assert refusal(written(tmp_path, text)) == (INVALID, why)


@given(st.text(alphabet=st.sampled_from("Ab =\"'\\#$;{}\n\0é"), max_size=20))
def test_no_content_is_repeated_and_none_raises_anything_else(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = written(Path(folder), f"A=s3cret\nB={text}")
        said = ""
        try:
            read = variables_of(made)
        except UnusableEnvironmentFile as refused:
            said = str(refused)
        else:
            assert read["A"] == "s3cret"
        assert "s3cret" not in said


def test_a_file_that_is_not_there_or_is_no_file_is_refused(tmp_path: Path) -> None:
    made = template(environment_file=str(tmp_path / "mail.env"))
    assert refusal(made) == (MISSING, "cannot be read: No such file or directory")
    os.mkfifo(tmp_path / "mail.env", 0o600)  # nobody writes to it: whoever waits for that waits for ever
    assert refusal(made) == (UNSAFE, "is no regular file")
    assert refusal(template(environment_file=str(tmp_path)))[0] is MISSING


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666, 0o601])
def test_a_file_that_is_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    said = f"is open to others (mode {mode:04o}): close it with `chmod 600`"
    assert refusal(written(tmp_path, "A=s3cret", mode=mode)) == (UNSAFE, said)


def test_a_stricter_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    """Kubernetes mounts secrets behind links."""
    made = written(tmp_path, "A=b", mode=0o400)
    (tmp_path / "link").symlink_to("mail.env")
    assert variables_of(made) == variables_of(replace(made, environment_file=str(tmp_path / "link"))) == {"A": "b"}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can enter."""
    place = Path(tempfile.mkdtemp(prefix="headway-environment-"))
    place.chmod(0o711)
    yield place
    shutil.rmtree(place)


@as_root
def test_a_file_of_another_user_is_refused(place: Path) -> None:
    made = written(place, "A=s3cret")
    os.chown(place / "mail.env", NOBODY, NOBODY)
    cause, why = refusal(made)
    assert cause is UNSAFE
    assert why.startswith(f"belongs to uid {NOBODY}, which is neither root nor the agent's user (uid 0)")


@as_root
def test_a_worker_has_no_other_file_of_roots_read_for_it(place: Path) -> None:
    """Its user may lead the path to a file of root's, whose variables its job would then show."""
    made = replace(written(place, "A=s3cret"), user="nobody")
    assert variables_of(made) == {"A": "s3cret"}
    (place / "app").mkdir()
    os.chown(place / "app", NOBODY, NOBODY)
    (place / "app" / "mail.env").symlink_to(place / "mail.env")
    cause, why = refusal(replace(made, environment_file=str(place / "app" / "mail.env")))
    assert (cause, why) == (
        UNSAFE,
        f"can be replaced by the worker's user nobody, who may change {place}/app: keep it elsewhere",
    )


# --- real workers ----------------------------------------------------------------------------------------------------

SHOWS = "import json, os; print(json.dumps(dict(os.environ)), flush=True)\n" + SLEEP


def shown(stage: Stage, worker_id: str) -> dict[str, str]:
    """The environment that the worker printed."""
    log = stage.folder.root / "workers" / f"{worker_id}.log"
    return eventually(lambda: json.loads(log.read_text() or "null"))


def test_the_file_is_read_at_each_start_and_the_template_takes_precedence(stage: Stage, tmp_path: Path) -> None:
    made = replace(
        written(tmp_path, "LANG=of-the-file\nPASSWORD='s3cret $HOME'\nHOME=/elsewhere\n"),
        argv=(sys.executable, "-c", SHOWS),
        environment={"LANG": "of-the-template"},
    )
    with stage.fleet(made) as fleet:
        fleet.act([start()])
        (first,) = fleet.workers()
        seen = shown(stage, first.worker_id)
        assert (seen["LANG"], seen["PASSWORD"], seen["HOME"]) == ("of-the-template", "s3cret $HOME", "/elsewhere")
        written(tmp_path, "PASSWORD=another\n")
        fleet.act([start()])
        second = next(each for each in fleet.workers() if each != first)
        assert shown(stage, second.worker_id)["PASSWORD"] == "another"
        assert procfs.is_there(first.pid, procfs.stat(first.pid).started_ticks)  # one that runs is not touched


def test_no_worker_starts_with_a_wrong_file_and_one_does_once_it_is_right(
    stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = replace(written(tmp_path, "A=1\n", mode=0o644), ready=Ready(after_s=0.0))
    with stage.fleet(made) as fleet:
        fleet.act([start()] * 3)
        assert states(fleet) == 3 * [WorkerState.BACKING_OFF]
        assert {each.start_failure for each in fleet.workers()} == {UNSAFE}
        assert caplog.text.count(f"environment_file {tmp_path}/mail.env is open to others (mode 0644)") == 3
        assert [path.name for path in (stage.folder.root / "workers").iterdir()] == []
        (tmp_path / "mail.env").chmod(0o600)
        stage.clock.ahead_s += 11.0  # the pause is over
        reconcile_until(fleet, lambda: fleet.workers() == ())
        fleet.act([start()])
        reconcile_until(fleet, lambda: WorkerState.RUNNING in states(fleet))
        stage.clock.ahead_s += 11.0
        reconcile_until(fleet, lambda: {each.start_failure for each in fleet.workers()} == {None})


def test_a_start_that_fails_otherwise_ends_the_cause() -> None:
    failures = StartFailures()
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder) / "state")
        with stage.fleet(template(environment_file="/none")) as fleet:
            fleet.act([start()])
            (record,) = fleet._table.records()
            (worker,) = fleet.workers()
    failures.note_refusal(record, MISSING, now_s=1.0)
    assert failures.named(worker).start_failure is MISSING
    failures.note_refusal(record, None, now_s=2.0)
    assert failures.named(replace(worker, start_failure=None)).start_failure is None


def test_a_worker_has_the_umask_of_its_template_and_the_agent_keeps_its_own(stage: Stage, tmp_path: Path) -> None:
    before = os.umask(0o022)
    os.umask(before)
    code = "import os, sys; open(sys.argv[1], 'w').close(); os.mkdir(sys.argv[1] + '.d')\n" + SLEEP
    made = template(code, umask=0o027)
    with stage.fleet(replace(made, argv=(*made.argv, str(tmp_path / "made")))) as fleet:
        fleet.act([start()])
        eventually((tmp_path / "made.d").exists)
    assert ((tmp_path / "made").stat().st_mode & 0o777, (tmp_path / "made.d").stat().st_mode & 0o777) == (0o640, 0o750)
    assert os.umask(before) == before
