"""A host says of itself what its join token allows: no label and no template brings it work that it is not to have."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.__main__ import main
from headway.scaling.model import Template
from headway.store.hosts.host_allowance import ANYTHING, Allowance, admitted, allowance_of, allowance_to_json
from headway.wire.v1 import agent_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from security.planes import ANSWER_S, TOKEN, Plane, serving

pytestmark = pytest.mark.e2e

LABELS = {"zone": "a", "tier": "pci"}
TEMPLATES = ("rq", "payments", "mail-1")


@pytest.fixture
def plane(migrated_url: str, tmp_path: Path) -> Iterator[Plane]:
    with serving(migrated_url, tmp_path) as plane:
        yield plane


@pytest.fixture
def stub(plane: Plane) -> Iterator[AgentServiceStub]:
    with plane.channel() as channel:
        yield AgentServiceStub(channel)


@pytest.fixture
def shared_stub(shared_plane: Plane) -> Iterator[AgentServiceStub]:
    with shared_plane.channel() as channel:
        yield AgentServiceStub(channel)


class Host:
    """A host that says what it likes of itself."""

    def __init__(self, stub: AgentServiceStub, name: str) -> None:
        self.stub, self.name = stub, name
        self.known = agent_pb2.EnrolResponse()
        self.sequence = 0

    def join(self, secret: str = "") -> None:
        """With a join token, or with the credential that it has."""
        shown = (("authorization", f"Bearer {self.known.credential}"),) if not secret else ()
        request = agent_pb2.EnrolRequest(
            host_name=self.name, boot_id="boot", agent_id="mine", join_token=secret, host_id=self.known.host_id
        )
        known = self.stub.Enrol(request, metadata=shown, timeout=ANSWER_S)
        known.credential = known.credential or self.known.credential
        self.known = known

    def report(self, **more: object) -> None:
        self.sequence += 1
        answer = self.stub.Report(
            agent_pb2.ReportRequest(
                cluster_id=self.known.cluster_id,
                host_id=self.known.host_id,
                boot_id="boot",
                sequence=self.sequence,
                capacity=agent_pb2.HostCapacity(cpu_cores=1.0, memory_bytes=1),
                labels=LABELS,
                templates=[agent_pb2.Template(name=name, slots=1, labels={"tier": "pci"}) for name in TEMPLATES],
                **more,
            ),
            metadata=(("authorization", f"Bearer {self.known.credential}"),),
            timeout=ANSWER_S,
        )
        self.known.credential = answer.credential or self.known.credential


def known(plane: Plane, name: str = "") -> tuple[dict[str, str], dict[str, dict[str, str]], list[str]]:
    """What the one host, or that of the name, has there: its labels, its templates with theirs, what it was refused."""
    with plane.client() as people:
        (host,) = (each for each in people.get("/v1/hosts").json()["hosts"] if name in ("", each["name"]))
    return host["labels"], {each["name"]: each["labels"] for each in host["templates"]}, host["refused"]


NARROW = ({"zone": "a"}, {"rq": {}, "mail-1": {}})


def test_a_host_gets_no_label_and_no_template_that_its_join_token_does_not_allow(
    plane: Plane,
    stub: AgentServiceStub,
    migrated_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    host = Host(stub, "build-1")
    host.join(plane.token("join", "j", labels=["zone=*", "rack=1"], templates=["rq", "mail-*"]))
    start_ups = [agent_pb2.StartUp(template=name, start_up_s=1.0) for name in TEMPLATES]
    exits = [agent_pb2.Exit(template=name, exit_s=1.0) for name in TEMPLATES]
    for _ in range(3):
        host.report(start_ups=start_ups, exits=exits)
    labels, templates, refused = known(plane)
    assert (labels, templates) == NARROW
    assert refused == [
        "label tier=pci: the join token allows zone=*, rack=1",
        "template payments: the join token allows rq, mail-*",
    ]
    with plane.client() as people:
        acts = people.get("/v1/audit", params={"action": "host report refused"}).json()["acts"]
        reasons = people.get("/v1/health").json()["reasons"]
    assert "1 host reports labels or templates that no join token allowed there: see `headway get hosts`" in reasons
    assert [(each["actor"], each["after"]) for each in acts] == [("host build-1", {"refused": refused})]
    assert sum("refused of host=build-1" in line for line in plane.said) == 1
    with psycopg.connect(migrated_url) as connection:
        for table in ("template_start_ups", "template_exits"):
            learned = connection.execute(f"select template from {table} order by template").fetchall()
            assert learned == [("mail-1",), ("rq",)]
    monkeypatch.setenv("HEADWAY_URL", plane.http)
    monkeypatch.setenv("HEADWAY_TOKEN", TOKEN)
    for words in (["get", "hosts"], ["describe", "host", "build-1"]):
        assert main(words) == 0
        assert "template payments: the join token allows" in " ".join(capsys.readouterr().out.split())


def test_a_join_token_that_says_nothing_allows_anything(shared_plane: Plane, shared_stub: AgentServiceStub) -> None:
    """As each one that an earlier version made."""
    host = Host(shared_stub, "web-1")
    host.join(shared_plane.token("join", "says nothing"))
    host.report()
    assert known(shared_plane, "web-1") == (LABELS, {name: {"tier": "pci"} for name in TEMPLATES}, [])


def test_a_host_does_not_get_more_by_being_renewed_forgotten_or_named_anew(
    plane: Plane, stub: AgentServiceStub, migrated_url: str
) -> None:
    host = Host(stub, "build-1")
    host.join(plane.token("join", "j", labels=["zone=a"], templates=["rq", "mail-*"]))
    host.report()
    with plane.client() as people:
        assert people.post("/v1/hosts/build-1/rotate").status_code == 200
    before = host.known.credential
    for _ in range(200):
        host.report()
        if host.known.credential != before:
            break
    assert host.known.credential != before, "it was renewed"
    host.report()
    assert known(plane)[:2] == NARROW
    host.name = "payments-1"
    host.join()
    host.report()
    assert known(plane)[:2] == NARROW
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("delete from hosts")  # as forgetting does, of a host that is silent for long
    forgotten = host.known.host_id
    host.join()
    assert host.known.host_id != forgotten
    host.report()
    assert known(plane)[:2] == NARROW


def test_another_join_token_says_anew_what_a_host_may_at_once(
    shared_plane: Plane, shared_stub: AgentServiceStub
) -> None:
    host = Host(shared_stub, "build-1")
    host.join(shared_plane.token("join", "wide"))
    host.report()
    host.join(shared_plane.token("join", "narrow", host="build-1", labels=["zone=a"], templates=["rq", "mail-*"]))
    assert known(shared_plane, "build-1")[:2] == NARROW, "before it reports again"
    host.report()
    assert known(shared_plane, "build-1")[:2] == NARROW, "also where it reports what it reported before"
    host.join(shared_plane.token("join", "none", host="build-1", labels=[], templates=[]))
    host.report()
    labels, templates, refused = known(shared_plane, "build-1")
    assert (labels, templates) == ({}, {})
    assert refused[0].endswith("the join token allows none")
    host.join(shared_plane.token("join", "wide again", host="build-1"))
    host.report()
    assert known(shared_plane, "build-1") == (LABELS, {name: {"tier": "pci"} for name in TEMPLATES}, [])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"role": "viewer", "name": "v", "templates": ["rq"]}, "only a join token allows hosts some and not others"),
        ({"role": "join", "labels": ["zone"]}, "label 'zone': expected name=value, as in zone=a or rack=*"),
        ({"role": "join", "templates": ["x"] * 101}, "templates"),
        ({"role": "join", "templates": "rq"}, "templates"),
    ],
)
def test_an_allowance_that_cannot_be_is_refused(shared_plane: Plane, body: dict[str, object], says: str) -> None:
    with shared_plane.client() as people:
        answer = people.post("/v1/tokens", json=body)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


def test_what_a_join_token_allows_is_listed(
    shared_plane: Plane, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWAY_URL", shared_plane.http)
    monkeypatch.setenv("HEADWAY_TOKEN", TOKEN)
    words = [
        "token",
        "create",
        "--join",
        "--name",
        "rack-7",
        "--label",
        "zone=a",
        "--label",
        "rack=*",
        "--template",
        "rq",
    ]
    assert main(words) == 0
    capsys.readouterr()
    assert main(["token", "list"]) == 0
    assert "1 × any host; templates rq; labels zone=a, rack=*" in capsys.readouterr().out
    assert main(["token", "create", "--role", "viewer", "--name", "v", "--template", "rq"]) == 2


NAMES = st.text("abz=*-1", min_size=1, max_size=5)
PATTERNS = st.none() | st.lists(NAMES, max_size=4).map(tuple)


@given(
    st.none() | st.lists(st.tuples(NAMES, NAMES).map("=".join), max_size=4).map(tuple),
    PATTERNS,
    st.dictionaries(NAMES, NAMES, max_size=4),
    st.lists(NAMES, max_size=30, unique=True),
)
def test_what_is_left_is_allowed_what_is_not_is_named_and_checking_twice_changes_nothing(
    labels: tuple[str, ...] | None, templates: tuple[str, ...] | None, said: dict[str, str], names: list[str]
) -> None:
    allowance = Allowance(labels=labels, templates=templates)
    assert allowance_of(allowance_to_json(allowance)) == allowance
    reported = [Template(name=name, content_hash="", labels=said) for name in names]
    kept = admitted(allowance, said, reported)
    assert kept.labels.items() <= said.items()
    assert all(allowance.allows_label(*label) for label in kept.labels.items())
    assert [each.name for each in kept.templates] == [name for name in names if allowance.allows_template(name)]
    assert all(each.labels == kept.labels for each in kept.templates)
    assert bool(kept.refused) == (kept.labels != said or len(kept.templates) < len(names))
    again = admitted(allowance, kept.labels, kept.templates)
    assert (again.labels, again.templates, again.refused) == (kept.labels, kept.templates, ())
    assert admitted(ANYTHING, said, reported).templates == tuple(reported)
