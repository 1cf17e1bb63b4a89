"""One process a file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.errors import Misconfigured, Refused
from headway.local.locks import only_process, try_lock

HOLDS = """
import sys
from pathlib import Path
from headway.errors import Refused
from headway.local.locks import only_process
with only_process(Path(sys.argv[1]), held_by=lambda _: Refused("held"), unusable=Refused):
    print("held", flush=True)
    sys.stdin.read()
"""


def only(lock: Path):
    return only_process(
        lock, held_by=lambda pid: Refused(f"held by {pid}"), unusable=lambda why: Misconfigured(f"unusable: {why}")
    )


def test_a_second_process_is_refused_by_the_name_of_the_first_until_that_one_is_killed(tmp_path: Path) -> None:
    lock = tmp_path / "folder" / "lock"
    first = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with first:
        assert first.stdout.readline() == "held\n"
        with pytest.raises(Refused, match=f"held by {first.pid}"), only(lock):
            pass
        first.kill()
        first.wait(10)
    with only(lock):
        assert lock.read_text() == f"{os.getpid()}\n"


def test_a_file_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="unusable: File exists"), only(tmp_path / "file" / "lock"):
        pass


def test_a_shared_lock_is_had_by_many_and_by_nobody_alone(tmp_path: Path) -> None:
    files = [os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(3)]
    try:
        assert [try_lock(files[0], is_shared=True), try_lock(files[1], is_shared=True)] == [True, True]
        assert not try_lock(files[2])
        for shared in files[:2]:
            os.close(shared)
        assert try_lock(files[2])
    finally:
        os.close(files[2])
