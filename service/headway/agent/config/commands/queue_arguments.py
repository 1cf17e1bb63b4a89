"""The names of queues in a command line: where a template wants them, and which of them it takes. Pure.

The control plane sends the names of a pool's queues, and no word of a command line. A name becomes one only where the
template says so, by ``$(HEADWAY_QUEUES)`` in its argv, and only one that its own ``queues_allowed`` matches.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

from headway.agent.config.commands.worker_commands import understood
from headway.agent.config.worker_programs import library_of, program_of
from headway.agent.config.wrappers import has_shell
from headway.scaling.profile_keys.queue_patterns import STARS_MAX, is_match

QUEUES = "HEADWAY_QUEUES"
QUEUES_IN_ARGV = f"$({QUEUES})"
ARGUMENT_CHARS_MAX = 200
ARGUMENTS_BYTES_MAX = 100_000  # of all names together: Linux takes no word of 128 KiB
PATTERNS_ALLOWED_MAX = 100

_OPTION = re.compile(r"(--?[A-Za-z][A-Za-z0-9-]*=)" + re.escape(QUEUES_IN_ARGV))
_TAKES_CODE = frozenset({"-c", "-e", "-r", "--eval", "--exec", "--execute"})
_WORDS = frozenset({"dramatiq", "rq"})
"""Libraries whose workers take each queue as a word of its own."""


class Form(StrEnum):
    """How a program takes the names of several queues."""

    WORDS = "words"
    """Each is a word: ``rq worker high low``."""
    LISTED = "listed"
    """In one word, with commas between them: ``celery worker -Q high,low``."""
    REPEATED = "repeated"
    """Each behind the option: ``sidekiq -q high -q low``."""


def fills_queues(argv: Iterable[str]) -> bool:
    """Whether the names of the pool's queues are to stand in ``argv``."""
    return any(QUEUES_IN_ARGV in word for word in argv)


def queue_form(argv: Sequence[str]) -> Form:
    """How the worker of ``argv``, which has a place for them, takes the names of queues."""
    program, words = program_of(argv)
    if library_of(program) == "sidekiq" or (library_of(program) == "bundle" and "sidekiq" in words):
        return Form.REPEATED
    at = _place(argv)
    if argv[at] != QUEUES_IN_ARGV:
        return Form.LISTED
    command = understood(argv)
    if command is not None:
        return Form.WORDS if command.library in _WORDS else Form.LISTED
    return Form.LISTED if argv[at - 1].startswith("-") else Form.WORDS


def with_queues(argv: Sequence[str], names: Sequence[str]) -> list[str]:
    """``argv`` with ``names`` in their place; ``argv`` itself if it has none.

    The names are those that ``allowed_queues`` returns, at least one.
    """
    if not fills_queues(argv):
        return list(argv)
    at, form = _place(argv), queue_form(argv)
    before, word, after = argv[:at], argv[at], argv[at + 1 :]
    if form is Form.WORDS:
        return [*before, *names, *after]
    if form is Form.LISTED:
        return [*before, word.replace(QUEUES_IN_ARGV, ",".join(names)), *after]
    if word == QUEUES_IN_ARGV:
        return [*before[:-1], *(each for name in names for each in (before[-1], name)), *after]
    return [*before, *(word.replace(QUEUES_IN_ARGV, name) for name in names), *after]


def allowed_queues(queues: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The names in ``queues`` that a template with these ``queues_allowed`` takes, in their order and each once.

    ``queues`` have their connections before them, which their libraries do not know.
    """
    found: dict[str, None] = {}
    left = ARGUMENTS_BYTES_MAX
    for queue in queues:
        name = queue.partition("/")[2]
        if name in found or not is_queue_argument(name) or not any(is_match(each, name) for each in patterns):
            continue
        left -= len(name.encode()) + 1
        if left < 0:
            break
        found[name] = None
    return tuple(found)


def is_queue_argument(name: str) -> bool:
    """Whether ``name`` can only be the name of one queue where a command line takes names of queues."""
    is_short = 0 < len(name) <= ARGUMENT_CHARS_MAX
    return is_short and name[0] != "-" and not any(char in ", " or not char.isprintable() for char in name)


def queue_argument_breaches(
    argv: Sequence[str], burst_arguments: Iterable[str], patterns: Sequence[str]
) -> Iterator[str]:
    """What is wrong with where a template wants the names of queues, and with which it takes."""
    if fills_queues(burst_arguments):
        yield f"burst_arguments: {QUEUES_IN_ARGV} stands in argv alone, where a burst worker has it, too"
    if not fills_queues(argv):
        if patterns:
            yield f"queues_allowed has no use: argv has no {QUEUES_IN_ARGV}, where names of queues would stand"
        return
    if not patterns:
        yield (
            f"argv has {QUEUES_IN_ARGV}, and queues_allowed does not say which queues may stand there: write patterns, "
            "as in queues_allowed = ['tenant-*']"
        )
    if len(patterns) > PATTERNS_ALLOWED_MAX:
        yield f"queues_allowed has {len(patterns)} patterns; at most {PATTERNS_ALLOWED_MAX} fit"
    for each in patterns:
        if not is_queue_argument(each) or each.count("*") > STARS_MAX:
            yield (
                f"queues_allowed: {each!r} must have 1 to {ARGUMENT_CHARS_MAX} printable characters, no comma, no "
                f"space, no '-' at its beginning, and at most {STARS_MAX} '*'"
            )
    yield from _place_breaches(argv)


def _place_breaches(argv: Sequence[str]) -> Iterator[str]:
    places = [word for word in argv if QUEUES_IN_ARGV in word]
    if len(places) > 1 or places[0].count(QUEUES_IN_ARGV) > 1:
        yield f"argv has {QUEUES_IN_ARGV} more than once"
        return
    word, at = places[0], _place(argv)
    if at == 0 or not (word == QUEUES_IN_ARGV or _OPTION.fullmatch(word)):
        yield f"argv: {QUEUES_IN_ARGV} must be a word of its own, or stand behind an option, as in --queue={word}"
    elif has_shell(argv) or any(before in _TAKES_CODE and here == word for before, here in pairwise(argv)):
        yield f"argv: {QUEUES_IN_ARGV} may not reach a shell or code: write the program and its words into argv"
    elif word != QUEUES_IN_ARGV and (command := understood(argv)) is not None and command.library in _WORDS:
        yield f"argv: {command.library} takes each queue as a word: write {QUEUES_IN_ARGV} as a word of its own"
    elif word == QUEUES_IN_ARGV and queue_form(argv) is Form.REPEATED and not argv[at - 1].startswith("-"):
        yield f"argv: {QUEUES_IN_ARGV} must follow the option that names a queue, as --queue"


def _place(argv: Sequence[str]) -> int:
    return next(at for at, word in enumerate(argv) if QUEUES_IN_ARGV in word)
