"""A host that says what an attacker likes."""

from headway.wire.v1 import agent_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from security.planes import ANSWER_S, TOKEN

SHOWN = (("authorization", f"Bearer {TOKEN}"),)


class Host:
    """A host that reports what an attacker likes."""

    def __init__(self, stub: AgentServiceStub, name: str) -> None:
        self.stub = stub
        self.known = stub.Enrol(
            agent_pb2.EnrolRequest(host_name=name, boot_id=f"boot-{name}", agent_id=name), metadata=SHOWN
        )
        self.sequence = 0

    def report(self, **more: object) -> agent_pb2.ReportResponse:
        self.sequence += 1
        request = agent_pb2.ReportRequest(
            cluster_id=self.known.cluster_id,
            host_id=self.known.host_id,
            boot_id="boot",
            sequence=self.sequence,
            **{"capacity": agent_pb2.HostCapacity(cpu_cores=1.0, memory_bytes=1), **more},
        )
        shown = (("authorization", f"Bearer {self.known.credential}"),)
        return self.stub.Report(request, metadata=shown, timeout=ANSWER_S)
