"""Templates as hosts report them, one of each name for all pools of a tick."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from headway.scaling.model import Host, QueueOrder, Template
from headway.scaling.placement.host_capacity import is_open
from headway.scaling.profile import Profile

UNREPORTED = Template(name="", content_hash="")


def slowest_templates(known: Iterable[Host]) -> dict[str, Template]:
    """Each template that hosts report, by name, with the slots and times of its slowest host.

    Hosts may differ; with the fewest slots and the slowest start every one of them can keep up.
    """
    reported: dict[str, list[Template]] = {}
    for host in known:
        for template in host.templates:
            reported.setdefault(template.name, []).append(template)
    return {name: _slowest(templates) for name, templates in reported.items()}


def cores_of(known: Iterable[Host]) -> dict[str, float]:
    """The cores of the hosts that may start workers of each template, by its name."""
    cores: dict[str, float] = {}
    for host in known:
        for name in {template.name for template in host.templates} if is_open(host) else ():
            cores[name] = cores.get(name, 0.0) + host.capacity.cpu_cores
    return cores


def with_queues_of(profile: Profile, template: Template) -> Template:
    """``template`` with the pool's order where its workers take the queues strictly, and take their names from it."""
    if not template.queues_allowed or template.queue_order is not QueueOrder.STRICT:
        return template
    return replace(template, strict_queues=tuple(queue.partition("/")[2] for queue in profile.queues))


def _slowest(templates: Sequence[Template]) -> Template:
    # A host may know the order only once a worker of it has run: until then that of the others stands for it.
    orders = {(each.queue_order, each.strict_queues) for each in templates if each.queue_order is not None}
    order, strict_queues = orders.pop() if len(orders) == 1 else (None, ())  # workers that differ keep to none
    return replace(
        templates[0],
        queue_order=order,
        strict_queues=strict_queues,
        queues_allowed=templates[0].queues_allowed if all(each.queues_allowed for each in templates) else (),
        slots=min(each.slots for each in templates),
        start_up_s=_greatest(each.start_up_s for each in templates),
        start_up_p95_s=_greatest(each.start_up_p95_s for each in templates),
        start_up_cpu_s=_greatest(each.start_up_cpu_s for each in templates),
        exit_s=_greatest(each.exit_s for each in templates),
        leaves_due_jobs=all(each.leaves_due_jobs for each in templates),
    )


def _greatest(values: Iterable[float | None]) -> float | None:
    return max((each for each in values if each is not None), default=None)
