"""Flags that ``up`` and ``demo`` share, and how their values are read."""

import argparse
import math
import re
from collections.abc import Mapping

from headway.settings import ControlSettings

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)?")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def seconds(text: str) -> float:
    """A duration as in ``90s``, ``3m``, ``1h``, ``30d`` or ``90``, in seconds."""
    match = _DURATION.fullmatch(text)
    value = float(match[1]) * _SECONDS[match[2] or ""] if match else 0.0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration above 0, as in 90s or 3m")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def add_machine_flags(parser: argparse.ArgumentParser) -> None:
    """Where the doors bind, and how the terminal is used."""
    parser.add_argument("--http-address", metavar="HOST:PORT", help="where the HTTP door and the dashboard bind")
    parser.add_argument("--grpc-address", metavar="HOST:PORT", help="where the door for agents and collectors binds")
    parser.add_argument("--plain", action="store_true", help="print lines only, also in a terminal")


def control_settings(options: argparse.Namespace, env: Mapping[str, str], *, database_url: str) -> ControlSettings:
    """The doors and the token that flags and environment ask for. ``database_url`` stands in for one not yet known.

    Raises:
        Invalid, Misconfigured: as for a control plane of its own.
    """
    flags = {"HEADWAY_HTTP_ADDRESS": options.http_address, "HEADWAY_GRPC_ADDRESS": options.grpc_address}
    given = {name: value for name, value in flags.items() if value}
    return ControlSettings.from_env({"HEADWAY_DATABASE_URL": database_url, **env, **given})
