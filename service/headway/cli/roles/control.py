"""`headway control`: HTTP, gRPC and the scheduler in one process. Several may run behind one Postgres; one leads."""

import argparse
import os
from pathlib import Path

from headway.cli.argparse_base import Arguments
from headway.cli.process.loading import loading
from headway.cli.process.log_setup import log_to_stderr
from headway.cli.process.process_privacy import keep_private
from headway.cli.process.role_options import add_data_flags, laid_over
from headway.cli.process.shutdown import service_status
from headway.settings import ControlSettings


def main(words: list[str]) -> int:
    """Run a control plane until it is asked to stop. Returns the exit status."""
    parser = Arguments(prog="headway control", description=__doc__)
    add_data_flags(parser)
    parser.add_argument("--http-address", dest="HEADWAY_HTTP_ADDRESS", help="HOST:PORT of the HTTP endpoint")
    parser.add_argument("--grpc-address", dest="HEADWAY_GRPC_ADDRESS", help="HOST:PORT of the gRPC endpoint")
    # Of no use to others: who starts a demo writes there, before its end, what viewers are then shown.
    parser.add_argument("--ended-report", metavar="FILE", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words[1:])
    settings = ControlSettings.from_env(laid_over(os.environ, given))
    # Its parts take seconds to import on a slow core: not for a word of help, nor for one about a setting.
    with loading():
        from headway.cli.roles import control_server

    log_to_stderr()
    keep_private()
    return service_status(control_server.run(settings, ended_report=given.ended_report))
