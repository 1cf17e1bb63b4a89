"""After how long a worker's library cuts a job by itself, as its command line says, or its own default. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headway.agent.config.worker_programs import library_of, option_number, program_of

DRAMATIQ_SHUTDOWN_S = 600.0
SIDEKIQ_TIMEOUT_S = 25.0
LARAVEL_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLimit:
    """One bound of a library's own."""

    option: str
    """That sets it."""
    after_s: float
    sentence: str
    """What the library does then, without its full stop."""


def own_limits(argv: Sequence[str]) -> tuple[OwnLimit, ...]:
    """The bounds of the worker that this command line starts, the shortest first; none of one that is not known.

    The command line of a wrapper that stays is not read: its author knows what is in it.
    """
    program, words = program_of(argv)
    library = library_of(program)
    if library == "bundle" and "sidekiq" in words:
        library = "sidekiq"
    if library == "php" and "queue:work" in words:
        library = "laravel"
    read = _LIMITS.get(library)
    found = [] if read is None else read(words)
    return tuple(sorted(found, key=lambda each: each.after_s))


def _celery(words: Sequence[str]) -> list[OwnLimit]:
    found = []
    for option, does in (("--time-limit", "kills"), ("--soft-time-limit", "interrupts")):
        if seconds := option_number(words, option):
            sentence = f"Celery {does} a task that runs for longer than {seconds:g} s, whether its worker stops or not"
            found.append(OwnLimit(option=option, after_s=seconds, sentence=sentence))
    return found


def _dramatiq(words: Sequence[str]) -> list[OwnLimit]:
    option = "--worker-shutdown-timeout"
    milliseconds = option_number(words, option)
    seconds = DRAMATIQ_SHUTDOWN_S if milliseconds is None else milliseconds / 1000.0
    does = f"Dramatiq interrupts jobs that still run {seconds:g} s after the stop signal"
    return [OwnLimit(option=option, after_s=seconds, sentence=does)]


def _sidekiq(words: Sequence[str]) -> list[OwnLimit]:
    seconds = option_number(words, "--timeout", "-t")
    after_s = SIDEKIQ_TIMEOUT_S if seconds is None else seconds
    does = f"Sidekiq gives back jobs that still run {after_s:g} s after the stop signal"
    return [OwnLimit(option="--timeout", after_s=after_s, sentence=does)]


def _laravel(words: Sequence[str]) -> list[OwnLimit]:
    seconds = option_number(words, "--timeout")
    after_s = LARAVEL_TIMEOUT_S if seconds is None else seconds
    if not after_s:
        return []  # 0: without end
    does = f"Laravel kills a job that runs for longer than {after_s:g} s, whether its worker stops or not"
    return [OwnLimit(option="--timeout", after_s=after_s, sentence=does)]


def _given(option: str, library: str) -> Callable[[Sequence[str]], list[OwnLimit]]:
    """Of a library that waits without end unless the option says otherwise."""

    def found(words: Sequence[str]) -> list[OwnLimit]:
        seconds = option_number(words, option)
        if seconds is None:
            return []
        does = f"{library} cuts jobs that still run {seconds:g} s after the stop signal"
        return [OwnLimit(option=option, after_s=seconds, sentence=does)]

    return found


_LIMITS: Mapping[str, Callable[[Sequence[str]], list[OwnLimit]]] = {
    "celery": _celery,
    "dramatiq": _dramatiq,
    "laravel": _laravel,
    "procrastinate": _given("--shutdown-graceful-timeout", "Procrastinate"),
    "sidekiq": _sidekiq,
    "taskiq": _given("--wait-tasks-timeout", "taskiq"),
}
