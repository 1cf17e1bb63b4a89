"""Programs that start a worker and stay between it and its agent, and what each does to the signal to stop. Pure."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
PROGRAMS = frozenset(
    {
        *("arq", "artisan", "celery", "dramatiq", "huey_consumer", "huey_consumer.py", "manage.py", "procrastinate"),
        *("rq", "rq.cli", "rqworker", "sidekiq", "taskiq"),
    }
)
"""What a shell starts that is a worker; a shell with other commands may be the worker itself."""
_SHELL_TEXT = re.compile(r"-[a-z]*c")
_BECOMES = re.compile(r"(?:^|[;&|\n])\s*exec\s")
_OPERATOR = re.compile(r"[();<>|&]+")
_ONE_CHILD: Mapping[str, tuple[str, ...]] = {
    "dumb-init": ("--single-child", "-c"),
    "timeout": ("--foreground",),
}
"""Program -> the spellings of the option without which it passes a signal on to each process of the worker."""
_INITS = frozenset({"docker-init", "dumb-init", "tini", "tini-static"})
_TINI_GROUP = re.compile(r"-[gsvw]*g[gsvw]*")
_RQ = frozenset({"rq", "rqworker"})
_RQ_IN_ONE_GROUP = ("worker-pool", "-w", "--worker-class")
"""Words with which RQ's worker may run jobs in its own process group, as no other RQ worker does."""
_PROCFILE_RUNNERS = frozenset({"foreman", "honcho"})
_KINDS: Sequence[tuple[frozenset[str], str, str]] = (
    (
        frozenset({"npm", "npx", "pnpm", "yarn"}),
        "starts its script in a shell, which keeps the signal to stop from the worker",
        "write the program that the script names into argv",
    ),
    (
        frozenset({"entr", "nodemon", "watchfiles", "watchmedo"}),
        "ends the worker amid its jobs whenever a file changes",
        "leave it out",
    ),
    (
        frozenset({"docker", "kubectl", "podman"}),
        "starts the worker outside of its agent, which cannot watch it",
        "run an agent in the container",
    ),
    (
        frozenset({"circusd", "supervisord", *_PROCFILE_RUNNERS}),
        "starts several workers behind one process, which Headway counts, starts and stops as one",
        "write the command of one worker into argv",
    ),
    (
        frozenset({"runuser", "su", "sudo"}),
        "stays between the agent and its worker",
        "leave it out, and give the template a `user`",
    ),
)
"""Programs, what they do to a worker, and what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A program that changes how the worker that it starts stops."""

    name: str
    hazard: str
    """What it does to the worker, without its full stop."""
    cure: str


def wrapper_of(argv: Sequence[str]) -> Wrapper | None:
    """The wrapper that ``argv`` begins with; ``None`` if it is none, or becomes the worker, as ``nice`` does."""
    # npm shows a title in the place of its command line: "npm run worker".
    name = PurePath(argv[0].partition(" ")[0]).name if argv else ""
    if name in _SHELLS:
        text = shell_text(argv) or ""
        is_behind = any(PurePath(word).name in PROGRAMS for word in text.split()) and not _BECOMES.search(text)
        hazard = f"`{name} -c` may stay between the agent and its worker, and keeps the signal to stop from it"
        cure = "begin its command with `exec`, or write the program and its words into argv"
        return Wrapper(name=f"{name} -c", hazard=hazard, cure=cure) if is_behind else None
    if (group_cure := _group_cure(name, argv)) is not None:
        hazard = (
            f"{name} passes the signal to stop on to each process of a worker, and processes that run jobs end at once"
        )
        return Wrapper(name=name, hazard=hazard, cure=group_cure)
    if name in _PROCFILE_RUNNERS and "run" in argv[1:2]:
        return None  # one command, as it stands in argv
    for names, does, cure in _KINDS:
        if name in names:
            return Wrapper(name=name, hazard=f"{name} {does}", cure=cure)
    return None


def _group_cure(name: str, argv: Sequence[str]) -> str | None:
    """What keeps the program from signalling the worker's whole process group; ``None`` if it does not, or may."""
    if name in _INITS and _has_own_groups(argv):
        return None
    if name in _ONE_CHILD:
        option, *others = _ONE_CHILD[name]
        return f"give it {option}, or leave it out" if {option, *others}.isdisjoint(argv) else None
    return "leave out its -g" if name in _INITS and _has_tini_group(argv) else None


def _has_tini_group(argv: Sequence[str]) -> bool:
    """Whether tini is to signal the process group of its child: by an option of its own, not of the worker."""
    rest = iter(argv[1:])
    for word in rest:
        if _TINI_GROUP.fullmatch(word):
            return True
        if word == "--" or not word.startswith("-"):
            return False
        if word in {"-e", "-p"}:
            next(rest, None)
    return False


def _has_own_groups(argv: Sequence[str]) -> bool:
    """Whether the worker runs each job in a process group of its own, as RQ does: a signal to its group cuts none."""
    names = {PurePath(word.partition("=")[0]).name for word in argv}
    others = PROGRAMS - _RQ - {"manage.py"}
    return bool(names & _RQ) and names.isdisjoint({*others, *_RQ_IN_ONE_GROUP})


def has_shell(argv: Sequence[str]) -> bool:
    """Whether a word of ``argv`` names a shell, which may read the words behind it as commands."""
    return any(PurePath(word).name in _SHELLS for word in argv)


def shell_text(argv: Sequence[str]) -> str | None:
    """The commands that ``sh -c`` is given in ``argv``; ``None`` if it starts no shell, or a shell with a script."""
    if not argv or PurePath(argv[0]).name not in _SHELLS:
        return None
    rest = iter(argv[1:])
    for word in rest:
        if _SHELL_TEXT.fullmatch(word):
            return next(rest, None)
        if not word.startswith("-"):
            return None
    return None


def shell_commands(text: str) -> Iterator[list[str]]:
    """The words of each command in ``text``, without its operators; none of a text that no shell would take."""
    reader = shlex.shlex(text, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    reader.commenters = ""
    command: list[str] = []
    try:
        for word in reader:
            if _OPERATOR.fullmatch(word):
                yield command
                command = []
            else:
                command.append(word)
    except ValueError:
        return
    yield command
