"""Programs that start a worker and stay between it and its agent, and what each does to the signal to stop. Pure."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_PROGRAMS = frozenset(
    {
        *("arq", "artisan", "celery", "dramatiq", "huey_consumer", "huey_consumer.py", "manage.py", "procrastinate"),
        *("rq", "rq.cli", "rqworker", "sidekiq", "taskiq"),
    }
)
"""What a shell starts that is a worker; a shell with other commands may be the worker itself."""
_SHELL_TEXT = re.compile(r"-[a-z]*c")
_BECOMES = re.compile(r"(?:^|[;&|\n])\s*exec\s")
_OPERATOR = re.compile(r"[();<>|&]+")
_ONE_CHILD: Mapping[str, str] = {"dumb-init": "--single-child", "timeout": "--foreground"}
"""Program -> the option without which it passes a signal on to each process of the worker."""
_SHORT: Mapping[str, str] = {"--single-child": "-c"}
_SCRIPT_RUNNERS = frozenset({"npm", "npx", "pnpm", "yarn"})
_RELOADERS = frozenset({"entr", "nodemon", "watchfiles", "watchmedo"})
_CONTAINERS = frozenset({"docker", "kubectl", "podman"})
_USER_CHANGERS = frozenset({"runuser", "su", "sudo"})


def wrapper_hazard(argv: Sequence[str]) -> str | None:
    """What the program of this command line does to a worker that it starts, without its full stop.

    ``None`` if it starts none, becomes the worker (as ``nice`` does), or is not known.
    """
    name = wrapper_name(argv)
    if name is None:
        return None
    if name in _SHELLS:
        return (
            f"`{name} -c` may stay between the agent and its worker, and keeps the signal to stop from it: begin its "
            "command with `exec`, or write the program and its words into argv"
        )
    if name in _ONE_CHILD:
        return (
            f"{name} passes the signal to stop on to each process of a worker, and processes that run jobs end at "
            f"once: give it {_ONE_CHILD[name]}, or leave it out"
        )
    if name in _SCRIPT_RUNNERS:
        return (
            f"{name} starts its script in a shell, which keeps the signal to stop from the worker: write the program "
            "that the script names into argv"
        )
    if name in _RELOADERS:
        return f"{name} ends the worker amid its jobs whenever a file changes: leave it out"
    if name in _CONTAINERS:
        return f"{name} starts the worker outside of its agent, which cannot watch it: run an agent in the container"
    return f"{name} stays between the agent and its worker: leave it out, and give the template a `user`"


def wrapper_name(argv: Sequence[str]) -> str | None:
    """The wrapper that ``argv`` begins with, if it is one that changes how its worker stops."""
    # npm shows a title in the place of its command line: "npm run worker".
    name = PurePath(argv[0].partition(" ")[0]).name if argv else ""
    if name in _SHELLS:
        text = shell_text(argv)
        is_behind = text is not None and any(PurePath(word).name in _PROGRAMS for word in text.split())
        return name if is_behind and not _BECOMES.search(text or "") else None
    if name in _ONE_CHILD:
        option = _ONE_CHILD[name]
        return name if {option, _SHORT.get(option, option)}.isdisjoint(argv) else None
    others = _SCRIPT_RUNNERS | _RELOADERS | _CONTAINERS | _USER_CHANGERS
    return name if name in others else None


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
