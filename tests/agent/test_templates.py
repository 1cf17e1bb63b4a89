from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from headway.agent.config.host_file import DURATION_MAX_S, HOST_CORES_MAX, HostFile, load
from headway.agent.config.host_file_values import EXPECTED_MEMORY, memory_bytes, signal_number
from headway.agent.config.templates import Log, Recycle, Reporter, Template
from headway.control.agents.report_validation import check_report
from headway.errors import Invalid, Misconfigured
from headway.scaling.model import HostCapacity
from headway.store.hosts.host_reports import HostReport

WHOLE = """
[host]
name = "worker-7"
reserve_cpu_cores = 0.5
reserve_memory = "1GiB"

[templates.mail]
argv = ["sh", "-c", "echo {queues}"]
burst_arguments = ["--burst"]
slots = 4
working_directory = "app"
ready_pattern = "Listening on"
ready_timeout_s = 90
stop_signal = "INT"
drain_timeout_s = 120.5
force_signal = "SIGKILL"
niceness = 5
environment = { LANG = "C.UTF-8" }
resources = { cpu_cores = 0.25, memory_bytes = "200MB" }

[templates.plain]
argv = ["sh"]
"""
MAINTAINED = """
[host]
gpus = 4
starting_max = 3
labels = { zone = "a" }

[templates.train]
argv = ["sh"]
isolation_drain_after_s = 30
drain_timeout_s = 120
labels = { kind = "gpu" }
resources = { gpus = 2, measured = false }
recycle = { after_s = 3600, jobs = 500, memory_bytes = "300MB" }
log = { bytes_max = "1MB", files = 4 }
"""


def written(folder: Path, text: str) -> HostFile:
    (folder / "app").mkdir(exist_ok=True)
    (folder / "host.toml").write_text(text)
    return load(folder / "host.toml")


def breaches(folder: Path, text: str) -> list[str]:
    with pytest.raises(Invalid) as refused:
        written(folder, text)
    return [breach.removeprefix(f"{folder}/host.toml: ") for breach in refused.value.breaches]


def test_a_file_says_what_the_host_can_run(tmp_path: Path) -> None:
    host = written(tmp_path, WHOLE)
    mail, plain = host.templates["mail"], host.templates["plain"]
    assert (host.name, host.reserve_cpu_cores, host.reserve_memory_bytes) == ("worker-7", 0.5, 1024**3)
    assert mail.argv == ("sh", "-c", "echo {queues}")  # literal: nothing is ever put into it
    assert (mail.burst_arguments, mail.slots, mail.niceness) == (("--burst",), 4, 5)
    assert mail.working_directory == str(tmp_path / "app")
    assert (mail.ready.pattern, mail.ready.timeout_s) == ("Listening on", 90.0)
    assert (mail.stop.stop_signal, mail.stop.drain_timeout_s, mail.stop.force_signal) == (2, 120.5, 9)
    assert (mail.environment, mail.cpu_cores, mail.memory_bytes) == ({"LANG": "C.UTF-8"}, 0.25, 200_000_000)
    assert (plain.slots, plain.ready.pattern, plain.ready.after_s, plain.stop.stop_signal) == (1, None, 1.0, 15)
    assert plain.working_directory == str(tmp_path)


def test_a_file_describes_how_workers_are_maintained(tmp_path: Path) -> None:
    host = written(tmp_path, MAINTAINED)
    train = host.templates["train"]
    assert (host.gpus, host.starting_max, host.labels) == (4, 3, {"zone": "a"})
    assert (train.gpus, train.is_measured, train.labels) == (2, False, {"kind": "gpu"})
    assert (train.recycle, train.log) == (
        Recycle(after_s=3600.0, jobs=500, memory_bytes=300_000_000),
        Log(bytes_max=1_000_000, files=4),
    )
    reported = train.reported()
    assert (reported.gpus, reported.labels, reported.isolation_drain_after_s) == (2, {"kind": "gpu"}, 30.0)
    plain = written(tmp_path, WHOLE).templates["plain"]
    assert (plain.recycle, plain.log, plain.user, plain.isolation_drain_after_s) == (Recycle(), Log(), None, None)


def test_mistakes_in_how_workers_are_maintained_are_reported_too(tmp_path: Path) -> None:
    reported = breaches(
        tmp_path,
        """
        [host]
        starting_max = 0
        labels = { zone = 1 }

        [templates.train]
        argv = ["sh"]
        user = "nobody-of-this-name"
        isolation_drain_after_s = 0
        environment = { CUDA_VISIBLE_DEVICES = "0" }
        labels = "gpu"
        resources = { gpus = 1, measured = "no" }
        recycle = { after_s = -1, jobs = 0, memory = 1 }
        log = { bytes_max = 10, files = 1000 }
        reporter = "rq"
        """,
    )
    assert reported == [
        "[host]: starting_max=0 must lie in 1..1000000000000",
        "[host]: labels: 'zone' must be a name and have a text of at most 200 characters, as in labels = {zone = 'a'}",
        "template 'train': isolation_drain_after_s=0 must lie above 0, up to 10000000000",
        "template 'train': labels='gpu': expected a table",
        "template 'train': resources.measured='no': expected true or false",
        "template 'train': recycle.after_s=-1 must lie above 0, up to 1000000000000",
        "template 'train': recycle.jobs=0 must lie in 1..1000000000000",
        "template 'train': recycle: unknown key 'memory'; did you mean 'memory_bytes'?",
        "template 'train': log.bytes_max=10 must lie in 4096..1024000000000000",
        "template 'train': log.files=1000 must lie in 0..100",
        "template 'train': reporter='rq': expected one of celery, none",
        "template 'train': user 'nobody-of-this-name' is not known on this machine: create it, or leave the key out",
        "template 'train': resources: gpus = 1, but [host] says gpus = 0: no worker would fit",
        (
            "template 'train': environment sets CUDA_VISIBLE_DEVICES, which the agent gives to each worker that "
            "needs gpus"
        ),
    ]


def test_names_that_the_control_plane_would_refuse_are_reported_here(tmp_path: Path) -> None:
    """It would refuse them with the host's whole report, and the host would count as lost."""
    name, long = r"a\u0000b", "x" * 201
    text = "".join(f'[templates."{each}"]\nargv = ["sh"]\n' for each in ("", name, long))
    text += f'[host]\nname = "{long}"\nlabels = {{ "{name}" = "a", zone = "{long}" }}\n'
    reported = breaches(tmp_path, text)
    assert [each.partition(" its name")[0] for each in reported[3:]] == [
        "template '':",
        r"template 'a\x00b':",
        f"template '{long}':",
    ]
    assert [each.partition(" must")[0] for each in reported[:2]] == [
        r"[host]: labels: 'a\x00b'",
        "[host]: labels: 'zone'",
    ]
    assert reported[2:3] == ["[host]: name has more than 200 characters"]


def test_numbers_that_the_control_plane_would_refuse_are_reported_here(tmp_path: Path) -> None:
    """What it takes to the last digit passes, and the next larger number is a mistake of the file."""
    text = '[templates.mail]\nargv = ["sh"]\nisolation_drain_after_s = {0}\ndrain_timeout_s = {0}\n'
    text += 'resources = {{ cpu_cores = {1}, memory_bytes = "{2} TB" }}\n'
    mail = written(tmp_path, text.format(DURATION_MAX_S, HOST_CORES_MAX, 1024)).templates["mail"]
    report = HostReport(
        host_id="h",
        boot_id="b",
        sequence=1,
        epoch_seen=1,
        received_at_s=0.0,
        capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1),
        templates=(mail.reported(),),
    )
    check_report(report)
    reported = breaches(tmp_path, text.format(2 * DURATION_MAX_S, 2 * HOST_CORES_MAX, 1025))
    assert reported == [
        "template 'mail': isolation_drain_after_s=20000000000 must lie above 0, up to 10000000000",
        "template 'mail': drain_timeout_s=20000000000 must lie in 0..10000000000",
        "template 'mail': resources.cpu_cores=2000000 must lie in 0..1000000",
        f"template 'mail': resources.memory_bytes='1025 TB': {EXPECTED_MEMORY}",
    ]


def test_a_template_has_a_file_of_variables_and_a_umask_which_count_in_its_hash_where_they_are_given(
    tmp_path: Path,
) -> None:
    text = '[templates.a]\nargv = ["sh"]\n'
    plain = written(tmp_path, text).templates["a"]
    given = written(tmp_path, text + 'environment_file = "secrets/a.env"\numask = "0027"\n').templates["a"]
    assert (plain.environment_file, plain.umask) == (None, None)
    assert (given.environment_file, given.umask) == (str(tmp_path / "secrets" / "a.env"), 0o027)  # read at a start
    hashes = {plain.content_hash, given.content_hash, replace(given, umask=0).content_hash}
    hashes |= {replace(given, umask=None).content_hash, replace(given, environment_file=None).content_hash}
    assert len(hashes) == 5
    whole = written(tmp_path, text + 'environment_file = "/etc/a.env"\numask = "077"\n').templates["a"]
    assert (whole.environment_file, whole.umask) == ("/etc/a.env", 0o077)


@pytest.mark.parametrize("value", ["22", "0o27", '"0o27"', '"27"', '"0028"', '"1777"', '"-027"', "true", '""'])
def test_a_umask_is_octal_text(tmp_path: Path, value: str) -> None:
    (reported,) = breaches(tmp_path, f"[templates.a]\nargv = ['sh']\numask = {value}\n")
    assert reported.startswith("template 'a': umask=")
    assert reported.endswith(": expected three octal digits in quotes, as in '0027'")


def test_a_hash_is_the_one_of_earlier_versions_where_nothing_new_is_given() -> None:
    """Else an agent of this version would replace every worker that it takes over."""
    old = Template(name="a", argv=("sh", "-c", "x"), working_directory="/", environment={"A": "b"})
    assert old.content_hash == "7784ed5be6485608320e929ec6c2ff6b86bac76aa4b40d14028cd95791287316"


def test_only_root_can_run_workers_as_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    (reported,) = breaches(tmp_path, "[templates.a]\nargv = ['sh']\nuser = 'root'\n")
    assert reported == (
        "template 'a': user 'root': only an agent that runs as root can run workers as another user; "
        "run the agent as root"
    )


def test_all_mistakes_are_reported_together_and_by_name(tmp_path: Path) -> None:
    reported = breaches(
        tmp_path,
        """
        [host]
        reserve_cpu_cores = -1
        colour = "red"

        [templates.mail]
        argv = ["rqq", "worker"]
        slotz = 2
        slots = 0
        stop_signal = "KILL"
        resources = { memory_bytes = "12 apples", disk = 1 }

        [templates.web]
        ready_pattern = "("
        ready_after_s = 1
        environment = { PORT = 80, HEADWAY_POOL = "x" }
        working_directory = "nowhere"

        [templates.slow]
        argv = "celery worker"
        ready_timeout_s = true
        drain_timeout_s = "60s"
        """,
    )
    assert reported == [
        "[host]: reserve_cpu_cores=-1 must lie in 0..1000000000000",
        (
            "[host]: unknown key 'colour'; known: gpus, labels, name, reserve_cpu_cores, reserve_memory, "
            "starting_max, workers_max"
        ),
        "template 'mail': unknown key 'slotz'; did you mean 'slots'?",
        "template 'mail': slots=0 must lie in 1..10000",
        f"template 'mail': resources.memory_bytes='12 apples': {EXPECTED_MEMORY}",
        "template 'mail': resources: unknown key 'disk'; known: cpu_cores, gpus, measured, memory_bytes",
        "template 'mail': stop_signal KILL would let no job finish: name the signal that the worker drains on",
        "template 'mail': program 'rqq' is not on PATH: install it, or give its whole path in argv",
        "template 'web': ready_pattern '(' is no regular expression: missing ), unterminated subpattern at position 0",
        "template 'web': environment: 'PORT' must be a name without '=' and its value a text in quotes",
        "template 'web': argv is missing: the program and its arguments, as in argv = ['rq', 'worker', 'mail']",
        "template 'web': ready_after_s and ready_pattern exclude each other: keep one",
        "template 'web': environment sets HEADWAY_POOL, which is the agent's own mark",
        f"template 'web': working_directory {tmp_path}/nowhere is no folder",
        "template 'slow': argv='celery worker': expected a list of texts, as in ['rq', 'worker']",
        "template 'slow': ready_timeout_s=True: expected a number in 0..1000000000000",
        "template 'slow': drain_timeout_s='60s': expected a number in 0..10000000000",
        "template 'slow': ready_timeout_s needs a ready_pattern to wait for",
    ]


def test_what_follows_only_from_a_key_that_is_misspelt_is_no_mistake_more(tmp_path: Path) -> None:
    reported = breaches(
        tmp_path,
        """
        [templates.a]
        argv = ["sh"]
        ready_patern = "ready"
        ready_timeout_s = 60
        drain_timeut_s = 60
        isolation_drain_after_s = 30

        [templates.b]
        arvg = ["sh"]
        """,
    )
    assert reported == [
        "template 'a': unknown key 'ready_patern'; did you mean 'ready_pattern'?",
        "template 'a': unknown key 'drain_timeut_s'; did you mean 'drain_timeout_s'?",
        "template 'b': unknown key 'arvg'; did you mean 'argv'?",
    ]


@pytest.mark.parametrize(
    ("key", "says"),
    [("cpus", "cores are detected"), ("cpu_cores", "cores are detected"), ("memory", "memory is detected")],
)
def test_what_is_detected_of_a_host_is_no_key_and_its_limit_is_named(tmp_path: Path, key: str, says: str) -> None:
    """The letters of cpus are near those of gpus, which would give workers GPUs."""
    (reported,) = breaches(tmp_path, f'[host]\n{key} = 4\n[templates.a]\nargv = ["sh"]\n')
    assert reported.startswith(f"[host]: unknown key '{key}'; {says}, and ")
    assert "did you mean" not in reported
    assert "reserve_" in reported


def test_the_value_of_a_variable_is_in_no_message(tmp_path: Path) -> None:
    reported = breaches(tmp_path, '[templates.a]\nargv = ["sh"]\nenvironment = { "A=B" = "s3cret", "C" = 123456 }\n')
    assert len(reported) == 2
    assert not any("s3cret" in each or "123456" in each for each in reported)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "it has no [templates.NAME]: the host could run nothing"),
        ("templates = 3", "the file: templates=3: expected tables, as in [templates.NAME]"),
        ("[template.a]\nargv = ['sh']", "the file: unknown key 'template'; did you mean 'templates'?"),
        ("[templates.a]\nargv = ['./gone']", "template 'a': program './gone' is not there or not executable"),
        ("[templates.a]\nargv = ['./host.toml']", "template 'a': program './host.toml' is not there or not executable"),
        ("[templates.a]\nargv = ['']", "template 'a': argv=['']: expected a list of texts, as in ['rq', 'worker']"),
    ],
)
def test_what_cannot_be_run_is_one_line(tmp_path: Path, text: str, reported: str) -> None:
    assert reported in breaches(tmp_path, text)


def test_a_program_is_searched_on_the_path_that_the_worker_will_have(tmp_path: Path) -> None:
    program = tmp_path / "app" / "only-here"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = f"[templates.a]\nargv = ['only-here']\nenvironment = {{ PATH = '{program.parent}' }}\n"
    assert written(tmp_path, text).templates["a"].argv == ("only-here",)


def test_a_file_that_is_not_there_or_no_toml_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        Misconfigured, match=r"host.toml cannot be read: No such file.*`headway agent init LIBRARY` writes one"
    ):
        load(tmp_path / "host.toml")
    with pytest.raises(Misconfigured, match=r"host.toml is not TOML: .*line 3"):
        written(tmp_path, "[templates.a]\nargv = [\n}")
    with pytest.raises(Misconfigured, match=r"host.toml is not TOML: "):
        written(tmp_path, "a = " + "[" * 20_000)


def test_a_template_has_the_same_hash_in_whatever_order_it_is_written(tmp_path: Path) -> None:
    one = written(tmp_path, "[templates.a]\nargv = ['sh']\nslots = 2\n").templates["a"].content_hash
    same = written(tmp_path, "[templates.a]\nslots = 2\nargv = ['sh']\nready_after_s = 1\n").templates["a"].content_hash
    other = written(tmp_path, "[templates.a]\nslots = 3\nargv = ['sh']\n").templates["a"].content_hash
    assert one == same != other


def test_a_change_of_how_workers_are_maintained_changes_no_hash(tmp_path: Path) -> None:
    """Else a longer drain timeout would cost every worker a restart."""
    before = written(tmp_path, "[templates.a]\nargv = ['sh']\n").templates["a"]
    after = written(
        tmp_path,
        "[templates.a]\nargv = ['sh']\ndrain_timeout_s = 9\nready_after_s = 3\nlabels = {zone = 'a'}\n"
        "recycle = {jobs = 5}\nlog = {files = 3}\nresources = {memory_bytes = 5}\nisolation_drain_after_s = 9\n"
        "reporter = 'celery'\n",
    ).templates["a"]
    assert before != after
    assert before.content_hash == after.content_hash


@pytest.mark.parametrize(
    ("given", "reporter"),
    [
        ("argv = ['bin/celery', '-A', 'shop', 'worker']", Reporter.CELERY),
        ("argv = ['bin/celery', '-A', 'shop', 'worker']\nreporter = 'none'", Reporter.NONE),
        ("argv = ['bin/celery', '-A', 'shop', 'beat']", Reporter.NONE),
        ("argv = ['sh']", Reporter.NONE),
        ("argv = ['sh']\nreporter = 'celery'", Reporter.CELERY),
    ],
)
def test_celery_reports_where_argv_itself_is_celery_unless_the_file_says_otherwise(
    tmp_path: Path, given: str, reporter: Reporter
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "celery").touch(mode=0o755)
    assert written(tmp_path, f"[templates.a]\n{given}\n").templates["a"].reporter is reporter


@pytest.mark.parametrize(
    "change",
    ["argv = ['sh', '-x']", "niceness = 1", "environment = {A = 'b'}", "burst_arguments = ['-b']", "slots = 2"],
)
def test_a_change_of_what_is_started_changes_the_hash(tmp_path: Path, change: str) -> None:
    before = written(tmp_path, "[templates.a]\nargv = ['sh']\n").templates["a"]
    argv = "" if change.startswith("argv") else "argv = ['sh']\n"
    assert written(tmp_path, f"[templates.a]\n{argv}{change}\n").templates["a"].content_hash != before.content_hash


def test_the_control_plane_receives_names_and_sizes_and_no_command(tmp_path: Path) -> None:
    reported = written(tmp_path, WHOLE).templates["mail"].reported()
    assert (reported.name, reported.slots, reported.cpu_cores, reported.memory_bytes) == ("mail", 4, 0.25, 200_000_000)
    assert "echo" not in repr(reported)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (5, 5),
        ("5B", 5),
        ("128MB", 128_000_000),
        ("1.5 GiB", 3 * 512 * 1024 * 1024),
        ("2kb", 2_000),
        ("0", None),
        ("MB", None),
        (-1, None),
        (True, None),
        (1.5, None),
        ("1000 TB", 10**15),
        ("2000 TB", None),
        ("9" * 400 + "B", None),
    ],
)
def test_sizes(text: object, size: int | None) -> None:
    with nullcontext() if size is not None else pytest.raises(ValueError, match="expected bytes"):
        assert memory_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "number"), [("TERM", 15), ("SIGTERM", 15), ("int", 2), ("_IGN", None), ("", None), (15, None)]
)
def test_signals(text: object, number: int | None) -> None:
    with nullcontext() if number is not None else pytest.raises(ValueError, match="expected a signal"):
        assert signal_number(text) == number
