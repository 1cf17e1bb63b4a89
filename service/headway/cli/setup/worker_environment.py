"""Which variables of a worker that runs a template takes over: no secret of another process is copied. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.cli.setup.broker_candidates import URL_VARIABLES
from headway.connections import has_password

CARRIED = frozenset(
    {
        *("APP_ENV", "CELERY_CONFIG_MODULE", "CELERY_LOADER", "C_FORCE_ROOT", "DJANGO_CONFIGURATION"),
        *("DJANGO_SETTINGS_MODULE", "ENVIRONMENT", "FLASK_APP", "FLASK_ENV", "PYTHONPATH"),
        *("PYTHONUNBUFFERED", "REMAP_SIGTERM", "RQ_KEY_PREFIX", "TZ"),
    }
)
"""They say how a program runs, and hold no secret."""
_OF_A_SESSION = re.compile(
    r"_|COLORTERM|COLUMNS|DBUS_.*|DEBIAN_FRONTEND|DISPLAY|EDITOR|FORCE_COLOR|GPG_.*|HEADWAY_.*|HISTFILE|HOME|HOSTNAME|"
    r"INVOCATION_ID|JOURNAL_STREAM|LANGUAGE|LC_.*|LANG|LESS.*|LINES|LOGNAME|LS_COLORS|MAIL|MANAGERPID|MEMORY_PRESSURE_.*|"
    r"NO_COLOR|NOTIFY_SOCKET|OLDPWD|PAGER|PATH|PS1|PWD|SHELL|SHLVL|SSH_.*|SUDO_.*|SYSTEMD_.*|TERM|TERM_.*|TMUX.*|"
    r"USER|VIRTUAL_ENV.*|VISUAL|WATCHDOG_.*|XDG_.*"
)
"""What shells and service managers set for themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a template has of a worker's environment."""

    variables: Mapping[str, str] = field(repr=False)
    missing: tuple[str, ...]
    """The names of those that the worker has and a template would start without."""


def carried(environment: Mapping[str, str], *, own: Mapping[str, str], written: Mapping[str, str]) -> Carried:
    """What to take of a worker's ``environment``.

    ``own`` is the environment that ``headway up`` gives its workers, ``written`` what stands in ``.env``: a URL with a
    password is taken where whoever types the command has the same one.
    """
    variables = {}
    missing = []
    for name, value in sorted(environment.items()):
        if _OF_A_SESSION.fullmatch(name):
            continue
        is_known = value in {own.get(name), written.get(name)}
        if name in CARRIED or (name in URL_VARIABLES and (is_known or not is_secret(value))):
            variables[name] = value
        elif own.get(name) != value:
            missing.append(name)
    return Carried(variables=variables, missing=tuple(missing))


def is_secret(url: str) -> bool:
    """Whether the URL in a variable may hold a password."""
    return "://" not in url or "@" in url or has_password(url)
