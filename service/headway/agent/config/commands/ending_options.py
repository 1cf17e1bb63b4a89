"""The options by which workers end by themselves: where they find no job, or after so much work. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from headway.agent.config.worker_programs import library_of, program_of
from headway.agent.config.wrappers import shell_commands, shell_text

_WHERE_IDLE: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "arq": frozenset({"--burst"}),
        "php": frozenset({"--once", "--stop-when-empty"}),
        "procrastinate": frozenset({"--one-shot"}),
        "rq": frozenset({"-b", "--burst", "--max-idle-time"}),
    }
)
_AFTER_WORK: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "php": frozenset({"--max-jobs", "--max-time"}),
        "rq": frozenset({"--max-jobs"}),
    }
)


def idle_end_options(argv: Sequence[str]) -> tuple[str, ...]:
    """The options in ``argv`` by which the worker ends where it finds no job."""
    return tuple(_given(argv, _WHERE_IDLE))


def work_end_options(argv: Sequence[str]) -> tuple[str, ...]:
    """The options in ``argv`` by which the worker ends after so many jobs, or so much time."""
    return tuple(_given(argv, _AFTER_WORK))


def _given(argv: Sequence[str], options: Mapping[str, frozenset[str]]) -> Iterator[str]:
    text = shell_text(argv)
    for command in [argv] if text is None else shell_commands(text):
        words = command[1:] if command[:1] == ["exec"] else command
        program, rest = program_of(words)
        library = library_of(program)
        if library == "manage.py" and rest[:1] == ["rqworker"]:
            library = "rq"
        known = options.get(library, frozenset())
        yield from (name for name in (word.partition("=")[0] for word in rest) if name in known)
