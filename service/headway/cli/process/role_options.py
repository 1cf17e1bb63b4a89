"""Flags that several commands share, and how they are laid over the environment."""

import argparse
import math
from collections.abc import Mapping
from pathlib import Path

from headway.settings import DATA_DIR, ControlSettings

DATABASE_URL, EVENT_LOG = "HEADWAY_DATABASE_URL", "HEADWAY_EVENT_LOG"


def positive(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def add_data_flags(parser: argparse.ArgumentParser) -> None:
    """Where the database and the event log are."""
    parser.add_argument("--database-url", dest=DATABASE_URL, help="where Postgres is, postgresql://…")
    parser.add_argument("--event-log", dest=EVENT_LOG, help="folder of the event log")


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """Where everything that runs on one machine keeps its state."""
    parser.add_argument(
        "--data-dir", metavar="FOLDER", type=Path, default=Path(DATA_DIR), help=f"where state is kept ({DATA_DIR})"
    )


def add_control(parser: argparse.ArgumentParser) -> None:
    """Which control planes are called."""
    parser.add_argument(
        "--control",
        dest="HEADWAY_CONTROL",
        metavar="HOST:PORT[,…]",
        help="the control plane's gRPC endpoint, or several with commas",
    )


def laid_over(env: Mapping[str, str], given: argparse.Namespace) -> dict[str, str]:
    """``env``, in which a flag that was given takes the place of the variable of its name, and of that one's file."""
    flags = {name: value for name, value in vars(given).items() if name.isupper() and value is not None}
    return {**{name: value for name, value in env.items() if name.removesuffix("_FILE") not in flags}, **flags}


def add_machine_flags(parser: argparse.ArgumentParser) -> None:
    """Where the servers bind, and how the terminal is used."""
    parser.add_argument("--http-address", metavar="HOST:PORT", help="address of the HTTP API and the dashboard")
    parser.add_argument(
        "--grpc-address", metavar="HOST:PORT", help="address of the gRPC endpoint for agents and collectors"
    )
    parser.add_argument("--plain", action="store_true", help="print lines only, also in a terminal")


def control_settings(options: argparse.Namespace, env: Mapping[str, str], *, database_url: str) -> ControlSettings:
    """The listeners and the token that flags and environment ask for. ``database_url`` stands in for one not yet known.

    Raises:
        Invalid, Misconfigured: as for a control plane of its own.
    """
    flags = {"HEADWAY_HTTP_ADDRESS": options.http_address, "HEADWAY_GRPC_ADDRESS": options.grpc_address}
    given = {name: value for name, value in flags.items() if value}
    outer = {name: value for name, value in env.items() if name != f"{DATABASE_URL}_FILE"}
    return ControlSettings.from_env({DATABASE_URL: database_url, **outer, **given})
