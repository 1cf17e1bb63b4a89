"""What a cause prepares holds whatever the control plane decides."""

from pathlib import Path

import pytest

from headway.agent.config.host_file import load
from headway.scaling.model import Assignment, Template
from headway.scaling.placement.pool_parts import PoolTarget
from headway.scaling.profile import profile_from_mapping
from shown.acts import only_on
from shown.hosts import QUEUES, host_file
from shown.site import HOSTS
from support.hosts import any_host
from support.placements import place

MAIL = Template(name="mail", content_hash="1", cpu_cores=0.02, memory_bytes=0)


@pytest.mark.parametrize("first", HOSTS)
def test_a_busy_host_has_a_worker_whichever_host_is_filled_first(first: str, tmp_path: Path) -> None:
    """Of equal hosts the one with the lesser id is, and ids are random: in half of all sites it was the other."""
    ids = {host: f"{host != first:d}" for host in HOSTS}
    hosts = []
    for host in HOSTS:
        file = tmp_path / f"{host}.toml"
        file.write_text(host_file(host, urls=dict.fromkeys(QUEUES.values(), "redis://"), folder=tmp_path))
        hosts.append(any_host(ids[host], labels=load(file).labels, templates=(MAIL,), memory_bytes=1000))
    profile = profile_from_mapping("mail", {"queues": ["redis/mail"], "template": "mail", **only_on("beta")})
    running = [
        Assignment(pool="news", host_id=ids["beta"], template="mail", base_workers=1),
        Assignment(pool="mail", host_id=ids["alpha"], template="mail", base_workers=1),
    ]
    spread = profile.placement
    targets = [
        PoolTarget(pool="news", template="mail", workers=1),
        PoolTarget(
            pool="mail",
            template="mail",
            workers=profile.workers_min,
            labels=spread.labels,
            spread=spread.spread,
        ),
    ]
    rows = place(targets, hosts, running)
    assert ids["beta"] in {row.host_id for row in rows if row.pool == "mail"}
