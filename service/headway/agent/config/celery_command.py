"""The command line of a Celery worker, as far as the agent adds to it what reports its jobs. Pure."""

import re
from collections.abc import Sequence
from itertools import pairwise

from headway.agent.config.worker_programs import becomes_another, library_of, program_of

INCLUDE = "--include"
_OPTIONS, _JOINED = frozenset({INCLUDE, "-I"}), (f"{INCLUDE}=", "-I")
_TAKES_VALUE = frozenset({"-A", "--app", "-b", "--broker", "--result-backend", "--loader", "--config", "--workdir"})
"""Celery's own options before its command that take the next word as their value."""
_IGNORES_PYTHONPATH = re.compile(r"-[a-zA-Z]*[EI][a-zA-Z]*")
_OF_PYTHON_TAKING = frozenset({"-W", "-X"})


def worker_word(argv: Sequence[str]) -> int | None:
    """Where ``argv`` has the word ``worker`` of ``celery`` or ``python -m celery``; ``None``: it starts neither.

    ``None`` also where an option makes the interpreter ignore PYTHONPATH, or another program may change it, as ``env``
    does: the worker would find no module.
    """
    program, words = program_of(argv)
    if becomes_another(argv) or library_of(program) != "celery" or _ignores_pythonpath(program):
        return None
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _TAKES_VALUE else 1
    return len(program) + at if words[at : at + 1] == ["worker"] else None


def _ignores_pythonpath(program: Sequence[str]) -> bool:
    pairs = pairwise(program)
    options = (word for before, word in pairs if before not in _OF_PYTHON_TAKING and word != "-m")
    return any(_IGNORES_PYTHONPATH.fullmatch(option) for option in options)


def including(argv: Sequence[str], module: str) -> tuple[str, ...]:
    """``argv`` of a Celery worker, which loads ``module``, too. Of two such options Celery would take the last only.

    ``argv`` itself where it starts no such worker.
    """
    word = worker_word(argv)
    if word is None:
        return tuple(argv)
    words = list(argv)
    for at in range(len(words) - 1, word, -1):
        if words[at] in _OPTIONS and at + 1 < len(words):
            words[at + 1] = f"{words[at + 1]},{module}"
            return tuple(words)
        if words[at].startswith(_JOINED) and words[at] not in _OPTIONS:
            words[at] = f"{words[at]},{module}"
            return tuple(words)
    return (*words[: word + 1], INCLUDE, module, *words[word + 1 :])


def excluding(words: Sequence[str], module: str) -> tuple[str, ...]:
    """The ``words`` of a Celery worker without ``module`` among what it loads, as an agent has added it."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        option = next((each for each in ("--include=", INCLUDE, "-I") if word.startswith(each)), None)
        if option is None:
            found.append(word)
            continue
        is_joined = word != option or option.endswith("=")
        modules = [each for each in (word.removeprefix(option) if is_joined else next(rest, "")).split(",") if each]
        left = ",".join(each for each in modules if each != module)
        found += ([f"{option}{left}"] if is_joined else [word, left]) if left else []
    return tuple(found)


def is_celery_inside(argv: Sequence[str]) -> bool:
    """Whether ``argv`` perhaps starts a Celery worker in a way that keeps the agent from adding words to it."""
    return worker_word(argv) is None and any("celery" in word for word in argv) and "worker" in " ".join(argv).split()
