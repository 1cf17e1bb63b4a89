"""What the first words of a command line start: which program, and of which queue library its worker is. Pure."""

import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType

from headway.agent.config.wrappers import PROGRAMS, shell_commands, shell_text

_LIBRARIES = MappingProxyType({"rqworker": "rq", "huey_consumer": "huey", "huey_consumer.py": "huey", "rq.cli": "rq"})
_INTERPRETERS = frozenset({"bundle", "php"})
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*")
_BECOMING = frozenset({"chrt", "env", "ionice", "nice", "nohup", "pipenv", "poetry", "stdbuf", "taskset"})
"""Programs that become what the rest of their command line starts."""
_RQ_VERBS = frozenset({"worker", "worker-pool", "rqworker"})
_ARTISAN_VERBS = frozenset({"queue:work", "queue:listen", "horizon", "horizon:supervisor", "horizon:work"})
_WORKER_VERBS: Mapping[str, str | None] = MappingProxyType(
    {
        "arq": None,
        "celery": "worker",
        "dramatiq": None,
        "huey": None,
        "procrastinate": "worker",
        "sidekiq": None,
        "taskiq": "worker",
    }
)
"""Library -> the word of its program that begins a worker; ``None``: the program is nothing else."""


def program_of(argv: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """What starts the program (itself, or an interpreter with a module or script), and the words that it is given.

    A program that becomes another, as ``nice`` does, is part of what starts it.
    """
    if not argv or not argv[0]:
        return (), []
    if (before := _before_program(argv)) > 0:
        program, words = program_of(argv[before:])
        return (*argv[:before], *program), words
    if not _PYTHON.fullmatch(PurePath(argv[0]).name):
        return (argv[0],), list(argv[1:])
    at = 1
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "-m":
        at += 2 if argv[at] in {"-W", "-X"} else 1
    at += at < len(argv) and argv[at] == "-m"
    return (tuple(argv[: at + 1]), list(argv[at + 1 :])) if at < len(argv) else ((), [])


def becomes_another(argv: Sequence[str]) -> bool:
    """Whether the first program of the command line becomes the next, with an environment that it may have changed."""
    return bool(argv) and PurePath(argv[0]).name in _BECOMING


def _before_program(argv: Sequence[str]) -> int:
    """How many words stand before the program that the first one becomes; 0: it stays, or starts nothing known."""
    if not becomes_another(argv):
        return 0
    return next((at for at, word in enumerate(argv) if _is_known(PurePath(word).name)), 0)


def _is_known(name: str) -> bool:
    return name in PROGRAMS or name in _INTERPRETERS or _PYTHON.fullmatch(name) is not None


def library_of(program: Sequence[str]) -> str:
    """The library whose program it is by its name; of any other program that name, and nothing without one."""
    name = PurePath(program[-1]).name if program else ""
    return _LIBRARIES.get(name, name)


def option_number(words: Sequence[str], *options: str) -> float | None:
    """What follows one of the options, as its next word or behind ``=``; ``None`` where none is there with a number."""
    for at, word in enumerate(words):
        name, _, value = word.partition("=")
        if name in options:
            text = value or (words[at + 1] if at + 1 < len(words) else "")
            try:
                return float(text)
            except ValueError:
                return None
    return None


def celery_words(argv: Sequence[str]) -> Sequence[str]:
    """What follows ``celery`` in the command line, also behind a wrapper; nothing where it is another program."""
    text = shell_text(argv)
    for words in [argv] if text is None else shell_commands(text):
        at = next((at for at, word in enumerate(words) if PurePath(word).name == "celery"), None)
        if at is not None:
            return words[at:]
    return ()


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


def starts_worker(argv: Sequence[str]) -> bool:
    """Whether a process with this command line, or this title in its place, is a worker of a library known here.

    So is each copy that the worker forks of itself: of a family, the eldest is the main process.
    """
    if library_in_title(argv[0] if argv else "") is not None or is_rq_worker(argv):
        return True
    program, words = program_of(argv)
    library = library_of(program)
    if library == "php":
        return any(PurePath(word).name == "artisan" for word in words) and not _ARTISAN_VERBS.isdisjoint(words)
    if library in _WORKER_VERBS:
        return _WORKER_VERBS[library] is None or _WORKER_VERBS[library] in words
    return library.startswith("sidekiq ")  # the title that it sets itself


def bears_second_stop(argv: Sequence[str], number: int) -> bool:
    """Whether a worker with this command line still finishes its jobs if the stop signal reaches it twice.

    Celery's does on TERM: each only says again that it shall stop. To others, and on INT, a second one is "at once".
    """
    program, _ = program_of(argv)
    is_celery = library_of(program) == "celery" or library_in_title(argv[0] if argv else "") == "celery"
    return is_celery and number == signal.SIGTERM
