"""What is written down before it is acted on, so that an agent that is killed between the two breaks nothing.

Starts and stops of workers are among `test_fleet.py`.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from headway.agent.controlplane.client import ControlClient, Proof
from headway.agent.controlplane.enrolment import Membership
from headway.agent.model import Identity
from headway.agent.state.state_dir import StateFolder
from headway.errors import Unavailable
from headway.local import procfs
from headway.wire.v1 import agent_pb2, agent_pb2_grpc
from support.agent_host import Host
from support.fake_control import FakeControl, serving
from support.waiting import eventually

BEFORE = Identity(agent_id="a", cluster_id="c", host_id="h", credential="old")


class Watched(StateFolder):
    """A folder that notes what a membership showed when an identity was about to be written."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.membership: Membership
        self.shown: list[tuple[str, bool]] = []
        self.is_full = False

    def save_identity(self, identity: Identity) -> None:
        now, is_let_in = self.membership.now
        self.shown.append((now.credential, is_let_in))
        if self.is_full:
            raise OSError(28, "No space left on device")
        super().save_identity(identity)


def membership(root: Path, port: int = 1) -> tuple[Watched, Membership]:
    folder = Watched(root)
    client = ControlClient(f"127.0.0.1:{port}", token=None, clock=procfs.since_boot_s)
    folder.membership = Membership(
        client, folder, identity=BEFORE, host_name="h", boot_id="b", join_token="", moved=lambda *_: None
    )
    return folder, folder.membership


def test_a_new_credential_is_written_down_before_it_is_used(tmp_path: Path) -> None:
    folder, member = membership(tmp_path)
    member.renew(BEFORE, "new")
    assert folder.shown == [("old", False)]
    assert member.now[0].credential == "new"
    assert (folder.identity().credential, folder.identity().former_credential) == ("new", "old")


def test_a_new_credential_that_a_full_disk_does_not_take_is_not_used(tmp_path: Path) -> None:
    folder, member = membership(tmp_path)
    folder.is_full = True
    member.renew(BEFORE, "new")
    assert member.now[0] == BEFORE


def test_who_the_host_is_is_written_down_before_it_calls_as_that(tmp_path: Path) -> None:
    with serving(FakeControl()) as port:
        folder, member = membership(tmp_path, port)
        assert member.identity().host_id == "host-1"
    assert folder.shown == [("old", False)]
    assert folder.identity().host_id == "host-1"


class Giving(FakeControl):
    """Gives each host that it lets in a credential."""

    def Enrol(self, request: Any, context: Any) -> agent_pb2.EnrolResponse:  # noqa: N802
        answer = super().Enrol(request, context)
        answer.credential = "given"
        return answer


def test_a_credential_that_is_given_and_cannot_be_written_down_lets_the_host_in_by_nothing(tmp_path: Path) -> None:
    """Used and then lost, it would lock the host out: from its first use on nothing else speaks for it."""
    with serving(Giving()) as port:
        folder, member = membership(tmp_path, port)
        folder.is_full = True
        with pytest.raises(Unavailable, match=r"identity\.json cannot be written"):
            member.identity()
        assert member.now == (BEFORE, False)
        folder.is_full = False
        assert member.identity().credential == "given"


def test_a_full_disk_keeps_no_host_out_that_is_given_nothing(tmp_path: Path) -> None:
    with serving(FakeControl()) as port:
        folder, member = membership(tmp_path, port)
        folder.is_full = True
        assert member.identity().host_id == "host-1"


class Promised(FakeControl):
    """Notes what a host has written down when a report of it arrives."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = folder / "contact.json"
        self.written: list[dict[str, float]] = []

    def Report(self, request: Any, context: Any) -> agent_pb2.ReportResponse:  # noqa: N802
        found = json.loads(self._file.read_text()) if self._file.exists() else {}
        self.written.append(found.get("promised", {}))
        return super().Report(request, context)


@pytest.mark.e2e
def test_what_a_report_promises_is_written_down_before_it_is_sent(tmp_path: Path) -> None:
    """The control plane goes by it once it has arrived, and the next agent must, too."""
    control = Promised(tmp_path / "state")
    with serving(control) as port:
        host_file = '[templates.t]\nargv = ["sleep", "600"]\nisolation_drain_after_s = 77.0\ndrain_timeout_s = 9\n'
        host = Host(tmp_path, control, port, host_file)
        try:
            host.agent()
            eventually(lambda: control.written)
        finally:
            host.clear()
    assert control.written[0] == {"t": 77.0}


class Shown(agent_pb2_grpc.AgentServiceServicer):
    """Notes what a call showed."""

    def __init__(self) -> None:
        self.headers: list[str] = []

    def Enrol(self, request: Any, context: Any) -> agent_pb2.EnrolResponse:  # noqa: N802
        self.headers += [value for key, value in context.invocation_metadata() if key == "authorization"]
        return agent_pb2.EnrolResponse(cluster_id="c", host_id="h")


@pytest.mark.parametrize(
    ("proof", "headers"),
    [
        (Proof(join_token="join"), []),
        (Proof(shown="mine"), ["Bearer mine"]),
        (Proof(), ["Bearer shared"]),
        (None, ["Bearer shared"]),
    ],
)
def test_a_join_token_is_shown_where_it_is_asked_for_and_never_as_a_calls_credential(
    proof: Proof | None, headers: list[str]
) -> None:
    """Proxies and logs keep headers; and the shared token is not shown beside it."""
    shown = Shown()
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        agent_pb2_grpc.add_AgentServiceServicer_to_server(shown, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        client = ControlClient(f"127.0.0.1:{port}", token="shared", clock=procfs.since_boot_s)
        client.enrol(host_name="a", host_id="", boot_id="b", proof=proof)
        client.close()
        server.stop(0).wait(5)
    assert shown.headers == headers
