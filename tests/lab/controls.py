"""A control plane of a lab."""

import os
import socket
import sys
from pathlib import Path

from lab.hosts import MARK, skewed_by
from lab.network import Network
from lab.programs import Program
from support.credential_files import token_file

GRPC_PORT, HTTP_PORT = 8461, 8460
TOKEN = "of-the-lab-4Zp8Qw2x"  # it opens nothing else
NO_POSTGRES = "headway: no Postgres answers at "


class Control:
    """One control plane, on a host of its own."""

    def __init__(self, name: str, folder: Path, network: Network, *, database_url: str, run: str) -> None:
        self.name = name
        self.address = network.join(name)
        self.grpc = f"{self.address}:{GRPC_PORT}"
        self.http = f"{self.address}:{HTTP_PORT}"
        self.clock = folder / f"{name}.clock"
        self.program = Program(
            f"control-{name}",
            folder,
            [*network.words(name), sys.executable, "-m", "headway", "control"],
            {
                **{key: value for key, value in os.environ.items() if not key.startswith("HEADWAY_")},
                "HEADWAY_DATABASE_URL": database_url,
                "HEADWAY_EVENT_LOG": str(folder / "events"),
                "HEADWAY_GRPC_ADDRESS": self.grpc,
                "HEADWAY_HTTP_ADDRESS": self.http,
                "HEADWAY_TOKEN_FILE": token_file(folder, TOKEN, name=f"{name}.token"),
                "HEADWAY_TLS": "elsewhere",  # nobody else is on these networks
                MARK: run,
                **skewed_by(self.clock),
            },
            says_when_ready="serving http=",
        )

    @property
    def leads_as(self) -> str:
        """What it calls itself where it leads."""
        return f"{socket.gethostname()}:{self.program.pid}"

    @property
    def misses_postgres(self) -> bool:
        """Whether it has ended as no Postgres answered when it began, as its last words say."""
        return not self.program.is_running and self.program.says(NO_POSTGRES)
