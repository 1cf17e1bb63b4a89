"""Templates as hosts report them: whose order counts where workers take the names of queues from the control plane."""

import pytest

from headway.control.scheduler.reported_templates import slowest_templates, with_queues_of
from headway.scaling.model import Host, HostCapacity, QueueOrder, Template
from headway.scaling.profile import Profile

PROFILE = Profile(pool="tenants", queues=("r/urgent", "r/tenant-a"), template="rq")


@pytest.mark.parametrize(
    ("order", "allowed", "strict_queues"),
    [
        (QueueOrder.STRICT, ("*",), ("urgent", "tenant-a")),
        (QueueOrder.IN_TURN, ("*",), ()),
        (None, ("*",), ()),
        (QueueOrder.STRICT, (), ("mail",)),  # its own command line names them
    ],
)
def test_a_strict_order_is_the_pools_where_workers_take_its_names(
    order: QueueOrder | None, allowed: tuple[str, ...], strict_queues: tuple[str, ...]
) -> None:
    own = ("mail",) if not allowed else ()
    template = Template(name="rq", content_hash="1", queue_order=order, queues_allowed=allowed, strict_queues=own)
    assert with_queues_of(PROFILE, template).strict_queues == strict_queues


def test_of_hosts_that_differ_names_are_taken_only_where_all_take_them() -> None:
    hosts = [
        Host(
            host_id=name,
            name=name,
            capacity=HostCapacity(cpu_cores=1.0, memory_bytes=1),
            templates=(Template(name="rq", content_hash="1", queues_allowed=allowed),),
        )
        for name, allowed in (("a", ("tenant-*",)), ("b", ()))
    ]
    assert slowest_templates(hosts[:1])["rq"].queues_allowed == ("tenant-*",)
    assert slowest_templates(hosts)["rq"].queues_allowed == ()
