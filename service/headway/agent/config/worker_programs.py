"""What the first words of a command line start: which program, and of which queue library its worker is. Pure."""

import re
from collections.abc import Sequence
from pathlib import PurePath
from types import MappingProxyType

_LIBRARIES = MappingProxyType({"rqworker": "rq", "huey_consumer": "huey", "huey_consumer.py": "huey", "rq.cli": "rq"})
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
_RQ_VERBS = frozenset({"worker", "worker-pool", "rqworker"})


def program_of(argv: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """What starts the program (itself, or an interpreter with a module or script), and the words that it is given."""
    if not argv or not argv[0]:
        return (), []
    if not _PYTHON.fullmatch(PurePath(argv[0]).name):
        return (argv[0],), list(argv[1:])
    at = 1
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "-m":
        at += 2 if argv[at] in {"-W", "-X"} else 1
    at += at < len(argv) and argv[at] == "-m"
    return (tuple(argv[: at + 1]), list(argv[at + 1 :])) if at < len(argv) else ((), [])


def library_of(program: Sequence[str]) -> str:
    """The library whose program it is by its name; of any other program that name, and nothing without one."""
    name = PurePath(program[-1]).name if program else ""
    return _LIBRARIES.get(name, name)


def library_in_title(title: str) -> str | None:
    """The library of a worker that shows a title in the place of its command line, as with ``setproctitle``."""
    if re.match(r"\[celeryd: [^\]]*:MainProcess\]", title):
        return "celery"
    return "rq" if re.match(r"rq:worker:[^:]*: (?:Listening|Started|\*\*\*)", title) else None


def has_rq_title(argv: Sequence[str]) -> bool:
    """Whether a process of an RQ worker, or of its job, shows a title in the place of its command line."""
    return bool(argv) and argv[0].startswith("rq:worker:")


def is_rq_worker(argv: Sequence[str]) -> bool:
    """Whether a process with this command line, or this title in its place, is a worker of RQ or the pool of some."""
    if has_rq_title(argv):
        return True
    program, words = program_of(argv)
    library = library_of(program)
    if library == "manage.py":
        return words[:1] == ["rqworker"]
    return library == "rq" and (PurePath(program[-1]).name == "rqworker" or not _RQ_VERBS.isdisjoint(words))
