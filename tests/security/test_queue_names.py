"""A control plane in the hands of an enemy sends names of queues: none reaches a command line that host.toml refuses.

Each test is an attack: it says what the control plane tries to gain.
"""

import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import psutil
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.agent.config.commands.queue_arguments import (
    QUEUES_IN_ARGV,
    allowed_queues,
    is_queue_argument,
    queue_argument_breaches,
    with_queues,
)
from headway.wire.v1 import agent_pb2
from support.agent_host import Host, one_host
from support.fake_control import row
from support.waiting import eventually

SEARCH = settings(max_examples=max(200, 2 * settings.default.max_examples))
"""2,000 examples under the profile ``searching``."""

ARGVS = st.sampled_from(
    [
        ["rq", "worker", QUEUES_IN_ARGV],
        ["celery", "-A", "shop", "worker", "-Q", QUEUES_IN_ARGV, "-c", "1"],
        ["celery", "-A", "shop", "worker", f"--queues={QUEUES_IN_ARGV}"],
        ["dramatiq", "shop", "--queues", QUEUES_IN_ARGV],
        ["sidekiq", "-q", QUEUES_IN_ARGV],
        ["php", "artisan", "queue:work", f"--queue={QUEUES_IN_ARGV}"],
        ["our-worker", QUEUES_IN_ARGV],
    ]
)
PIECES = st.sampled_from(
    ["tenant-", "-", "--burst", "--include=evil", ",", " ", "\n", "\0", "/", "*", QUEUES_IN_ARGV, ";reboot", "..", "é"]
)
NAMES = st.one_of(st.text(), st.lists(PIECES, max_size=5).map("".join), st.lists(PIECES).map("".join))
SENT = st.lists(st.one_of(NAMES, NAMES.map("redis/{}".format), NAMES.map("redis/tenant-{}".format)), max_size=20)
ALLOWED = st.lists(
    st.sampled_from(["tenant-*", "default", "*-mail", "t*n*t", "*"]), min_size=1, max_size=3, unique=True
)


@SEARCH
@example(["rq", "worker", QUEUES_IN_ARGV], ["redis/--worker-class=evil.Worker"], ["*"])
@example(["celery", "-A", "shop", "worker", "-Q", QUEUES_IN_ARGV, "-c", "1"], ["redis/tenant-1,admin"], ["tenant-*"])
@given(ARGVS, SENT, ALLOWED)
def test_each_word_that_a_name_adds_is_one_name_that_queues_allowed_matches(
    argv: list[str], sent: list[str], patterns: list[str]
) -> None:
    """To have the worker take from a queue that is not its own, load a module, or end at once."""
    assert list(queue_argument_breaches(argv, [], patterns)) == []
    names = allowed_queues(sent, patterns)
    for name in names:
        assert any(fnmatchcase(name, pattern) for pattern in patterns)
        assert is_queue_argument(name)
        assert name[0] != "-"
        assert "," not in name
        assert len(name) <= 200
        assert not any(char.isspace() or ord(char) < 32 for char in name)
    if not names:
        return
    kept = [word for word in argv if QUEUES_IN_ARGV not in word]
    filled = with_queues(argv, names)
    added = list(filled)
    for word in kept:
        added.remove(word)
    option = next(word for word in argv if QUEUES_IN_ARGV in word).removesuffix(QUEUES_IN_ARGV)
    taken = [name for word in added if word != "-q" for name in word.removeprefix(option).split(",")]
    assert taken == list(names)
    assert filled[0] == argv[0]


HOST_FILE = f"""
[templates.sleep]
argv = ["{sys.executable}", "-c", "import time; time.sleep(600)", "{QUEUES_IN_ARGV}"]
queues_allowed = ["tenant-*"]
ready_after_s = 0.0
drain_timeout_s = 5
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with one_host(tmp_path, HOST_FILE) as host:
        yield host


def sent(*queues: str) -> agent_pb2.PoolQueues:
    return agent_pb2.PoolQueues(pool="mail", queues=queues)


@pytest.mark.e2e
def test_a_real_worker_is_started_with_none_but_what_host_toml_allows(host: Host) -> None:
    """To have the worker take from another queue, or another option."""
    host.agent()
    host.control.assign(
        row(1), pools=[sent("r/admin", "r/tenant-1", "r/--evil", "r/tenant-a,admin", "r/tenant-2", "tenant-3")]
    )
    (pid,) = host.control.running(1)
    words = eventually(lambda: psutil.Process(pid).cmdline())
    assert words[3:] == ["tenant-1", "tenant-2"]
    assert "queues not served here pool=mail template=sleep: 4, by its queues_allowed: 'r/admin'" in host.logged()


@pytest.mark.e2e
def test_no_worker_is_started_for_queues_that_none_may_take(host: Host) -> None:
    """To have a worker start with an empty list, which to many a library means: all queues."""
    host.agent()
    host.control.assign(row(1), pools=[sent("r/admin")])
    eventually(lambda: "no queue of the pool is one that queues_allowed of template 'sleep' matches" in host.logged())
    assert host.control.pids() == set()
    host.control.assign(row(1), pools=[sent("r/admin", "r/tenant-1")])
    (pid,) = host.control.running(1)
    assert psutil.Process(pid).cmdline()[3:] == ["tenant-1"]
