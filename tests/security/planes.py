"""A control plane as its own process on a real Postgres, for attacks: on loopback, bounded in time."""

import os
import re
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import psutil

from support.attacked import PYTHON
from support.credential_files import token_file

ENDS_IN_S = 1_200.0  # one serves many tests, and a busy machine takes minutes for them
ANSWER_S = 30.0
TOKEN = "k7Qm2vX9tL4pZ8sR3wN6yB1c"  # of these control planes alone
TRUSTS_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nor need it here; whom the system trusts takes 20 ms to load
SERVING = re.compile(r"serving http=(\S+) grpc=(\S+)")


class Plane:
    """One `headway control` that serves."""

    def __init__(
        self, process: "subprocess.Popen[str]", said: list[str], http: str, grpc_address: str, *, database_url: str
    ) -> None:
        self.process = process
        self.database_url = database_url
        self.said = said
        """Its log, a line each, as it grows."""
        self.http = f"http://{http}"
        self.grpc = grpc_address

    def client(self, token: str | None = TOKEN, **options: object) -> httpx.Client:
        """A client of the HTTP API that shows ``token``."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(
            base_url=self.http,
            headers=headers,
            timeout=ANSWER_S,
            trust_env=False,
            verify=TRUSTS_NOBODY,
            **options,
        )

    def channel(self, *options: tuple[str, int]) -> grpc.Channel:
        """A gRPC connection of its own."""
        return grpc.insecure_channel(self.grpc, options=[("grpc.use_local_subchannel_pool", 1), *options])

    def token(self, role: str, name: str, **more: object) -> str:
        """A token of the role."""
        with self.client() as client:
            answer = client.post("/v1/tokens", json={"role": role, "name": name, **more})
        assert answer.status_code == 201, answer.text
        secret: str = answer.json()["secret"]
        return secret

    @property
    def rss_mb(self) -> float:
        """Its resident memory."""
        return float(psutil.Process(self.pid).memory_info().rss) / 1e6

    @property
    def pid(self) -> int:
        """The control plane's own process, behind ``timeout``."""
        (child,) = psutil.Process(self.process.pid).children()
        return child.pid


@contextmanager
def serving(
    url: str,
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    token: str = TOKEN,
    open_files: int | None = None,
    ends_in_s: float = ENDS_IN_S,
    python: str = PYTHON,
) -> Iterator[Plane]:
    """A control plane with these settings, until the end of the block; with no more than ``open_files`` descriptors.

    Without a ``token`` it asks for none.
    """
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")},
        "HEADWAY_DATABASE_URL": url,
        "HEADWAY_EVENT_LOG": str(folder / "events"),
        "HEADWAY_HTTP_ADDRESS": "127.0.0.1:0",
        "HEADWAY_GRPC_ADDRESS": "127.0.0.1:0",
        **(settings or {}),
    }
    if token:
        environment["HEADWAY_TOKEN_FILE"] = token_file(folder, token, name="plane-token")
    words = ["timeout", str(ends_in_s), python, "-m", "headway", "control"]
    if open_files is not None:
        words = ["prlimit", f"--nofile={open_files}:{open_files}", *words]
    process = subprocess.Popen(
        words, env={name: value for name, value in environment.items() if value}, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said: list[str] = []
    found = threading.Event()

    def read() -> None:
        for line in process.stderr or ():
            said.append(line.rstrip("\n"))
            if SERVING.search(line):
                found.set()
        found.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        found.wait(ENDS_IN_S)
        match = next((match for line in said if (match := SERVING.search(line))), None)
        assert match is not None, "\n".join(said)
        yield Plane(process, said, match[1], match[2], database_url=url)
    finally:
        process.terminate()
        process.wait(ANSWER_S)
        reader.join(ANSWER_S)
        process.stderr.close()
