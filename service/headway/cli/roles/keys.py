"""`headway keys`: a CA of your own, and the certificates that it signs for the servers and their clients."""

import argparse
from pathlib import Path

from headway.cli.argparse_base import Arguments
from headway.cli.terminal.printing import say
from headway.control.auth.pki import CA_DAYS, LEAF_DAYS, Pair, make_ca, make_client, make_server, read_ca, write_pair
from headway.errors import Invalid

FOLDER = Path("keys")


def main(words: list[str]) -> int:
    """Make what the second word names. Returns the exit status."""
    given = _options(words[1:])
    if given.days is not None and given.days < 1:
        raise Invalid(f"--days {given.days}: expected at least 1")
    {"init": _init, "server": _server, "client": _client}[given.what](given)
    return 0


def _init(given: argparse.Namespace) -> None:
    folder: Path = given.folder
    certificate, key = folder / "ca.crt", folder / "ca.key"
    pair = make_ca(given.name, days=given.days or CA_DAYS)
    write_pair(pair, certificate=certificate, key=key, is_replacing=given.force)
    say(f"wrote {certificate} and {key}")
    say(f"{key} can make any host's certificate: keep it here, and copy it nowhere")
    say(f"next: headway keys server NAME --folder {folder}")


def _server(given: argparse.Namespace) -> None:
    folder: Path = given.folder
    certificate, key = folder / "server.crt", folder / "server.key"
    pair = make_server(_ca(folder), given.names, days=given.days or LEAF_DAYS)
    write_pair(pair, certificate=certificate, key=key, is_replacing=given.force)
    say(f"wrote {certificate} and {key}, for {', '.join(given.names)}")
    say("where the control plane runs:")
    say(f"  HEADWAY_TLS_CERT={certificate.absolute()}")
    say(f"  HEADWAY_TLS_KEY={key.absolute()}")
    say(f"wherever an agent, a collector or a person calls it, with a copy of {folder / 'ca.crt'}:")
    say("  HEADWAY_TLS_CA=/etc/headway/ca.crt")


def _client(given: argparse.Namespace) -> None:
    folder: Path = given.folder
    certificate, key = folder / "clients" / f"{given.name}.crt", folder / "clients" / f"{given.name}.key"
    if "/" in given.name or given.name.startswith("."):
        raise Invalid(f"{given.name!r} is no name of a host")
    pair = make_client(_ca(folder), given.name, days=given.days or LEAF_DAYS)
    write_pair(pair, certificate=certificate, key=key, is_replacing=given.force)
    say(f"wrote {certificate} and {key}")
    say(f"copy both to {given.name}, readable by its agent's user only, and set there:")
    say(f"  HEADWAY_TLS_CERT=/etc/headway/{given.name}.crt")
    say(f"  HEADWAY_TLS_KEY=/etc/headway/{given.name}.key")
    say("where the control plane runs, so that it asks for certificates:")
    say(f"  HEADWAY_TLS_CLIENT_CA={(folder / 'ca.crt').absolute()}")


def _ca(folder: Path) -> Pair:
    return read_ca(folder / "ca.crt", folder / "ca.key")


def _options(words: list[str]) -> argparse.Namespace:
    parser = Arguments(prog="headway keys", description=__doc__)
    whats = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    init = whats.add_parser("init", help="make the CA")
    init.add_argument("--name", default="Headway", help="what it is called (%(default)s)")
    server = whats.add_parser("server", help="make the certificate of the control plane")
    server.add_argument("names", nargs="+", metavar="NAME", help="a host name or number by which it is called")
    client = whats.add_parser("client", help="make the certificate of a host or a collector")
    client.add_argument("name", metavar="NAME", help="the host's name, as HEADWAY_HOST_NAME has it")
    for each in (init, server, client):
        each.add_argument("--folder", type=Path, default=FOLDER, help="where the files are kept (%(default)s)")
        each.add_argument("--days", type=int, help="how long it is valid")
        each.add_argument("--force", action="store_true", help="replace files that are there")
    return parser.parse_args(words)
