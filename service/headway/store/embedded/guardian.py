"""Keeps one server while somebody owns it. A script of its own: small, and imports nothing of Headway.

    python -I -S guardian.py FOLDER RUNTIME_DIR PROGRAM STOP_SIGNAL ARGUMENT...

Owners hold a shared lock on ``owners.lock``; this process waits for the exclusive one. It gets it when the last owner
has let go or died, however it died: then it stops the server, cleans up and ends. A server that ends by itself ends its
guardian too; the next owner starts both afresh. A guardian that is killed takes its server along (see ``launch.py``).
So the lock on ``guardian.lock``, which it inherits from the owner that starts it and holds for life, answers whether
there is a server to adopt.
"""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

GUARDIAN_FAILED = 1  # the server ended with an error of its own: starting it again would not help
GUARDIAN_STOP_S = 30.0  # a fast stop writes a checkpoint, which a slow disk delays
KILL_S = 5.0


def main(words: list[str]) -> int:
    """Run the server until it ends or nobody owns it. Returns the exit status."""
    folder, runtime_dir, program, stop_signal, *argv = words
    state = Path(folder, "state.json")
    state.unlink(missing_ok=True)  # a dead guardian's
    stop_wanted, stop = os.pipe()
    stop_signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in stop_signals:
        signal.signal(number, lambda *_: os.write(stop, b"x"))

    launch = [sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py"))]
    signal.pthread_sigmask(signal.SIG_SETMASK, stop_signals)  # launch.py unblocks them when none can be lost any more
    # From the main thread: the kernel signals the server when the thread that started it ends.
    server = subprocess.Popen(
        [*launch, argv[0], stop_signal, str(os.getpid()), *argv[1:]],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        umask=0o077,
    )
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _write_state(state, {"program": program, "runtime_dir": runtime_dir, **_identities(server.pid)})
    threading.Thread(target=_wait_for_owners, args=(Path(folder, "owners.lock"), stop), daemon=True).start()

    server_fd = os.pidfd_open(server.pid)
    ready, _, _ = select.select([server_fd, stop_wanted], [], [])
    if server_fd not in ready:
        _stop(server_fd, int(stop_signal))
    server.wait()
    _clean(Path(runtime_dir))
    state.unlink(missing_ok=True)
    return GUARDIAN_FAILED if server.returncode > 0 else 0  # not when it was stopped, or killed


def _wait_for_owners(path: Path, stop: int) -> None:
    # The exclusive lock is kept until the end: a new owner waits for the stop instead of adopting what is going.
    fcntl.flock(os.open(path, os.O_RDWR | os.O_CLOEXEC), fcntl.LOCK_EX)
    os.write(stop, b"x")


def _stop(server_fd: int, stop_signal: int) -> None:
    for number, patience_s in ((stop_signal, GUARDIAN_STOP_S), (signal.SIGQUIT, KILL_S), (signal.SIGKILL, KILL_S)):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(server_fd, number)
        if select.select([server_fd], [], [], patience_s)[0]:
            return


def _identities(server_pid: int) -> dict[str, int]:
    """Pids with the ticks at which they started: together they are never reused before the next boot."""
    guardian_pid = os.getpid()
    return {
        "guardian_pid": guardian_pid,
        "guardian_started_ticks": _started_ticks(guardian_pid),
        "server_pid": server_pid,
        "server_started_ticks": _started_ticks(server_pid),
    }


def _started_ticks(pid: int) -> int:
    # The name, in parentheses, may hold spaces; the start is field 22 of the whole line.
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def _write_state(path: Path, values: dict[str, object]) -> None:
    new = path.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(values, file)
    new.replace(path)


def _clean(runtime_dir: Path) -> None:
    with suppress(OSError):  # nothing here is needed again, and the next start tidies as well
        for entry in runtime_dir.iterdir():
            entry.unlink()
        runtime_dir.rmdir()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
