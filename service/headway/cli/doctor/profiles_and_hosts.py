"""What profiles ask for and no host or broker has, and workers that do not start."""

from collections.abc import Iterator
from typing import Any

from headway.cli.doctor.control_plane import Installation, listed
from headway.cli.doctor.finding import Finding, fault, fine, remark, warning
from headway.cli.terminal.labels import held_jobs
from headway.scaling.conditions.condition_table import CONDITIONS
from headway.scaling.mapping import near


def template_findings(found: Installation) -> Iterator[Finding]:
    """Templates that no reachable host has, of pools that Headway starts workers for, and those whose workers end."""
    hosts = [row for row in found.hosts if row["is_known"]]
    known = sorted({template["name"] for row in hosts for template in row["templates"]})
    started = [row for row in found.pools if not (row["mode"] == "recommend" or found.health.get("recommends_only"))]
    missing = [row for row in started if row["template"] not in known]
    for row in missing:
        text = f"pool {row['pool']} names template {row['template']}, which no reachable host has"
        there = f"; there: {listed(known)}" if known else "; no host reports any"
        yield fault(
            "template", f"{text}{there};{near(row['template'], known)}".rstrip(";"), cure=CONDITIONS["no_host"].cure
        )
    if started and not missing:
        yield fine("template", "a reachable host has the template of every pool")
    yield from _failing(hosts)
    yield from _other_slots(hosts)


def _failing(hosts: list[dict[str, object]]) -> Iterator[Finding]:
    failing: dict[str, list[str]] = {}
    for row in hosts:
        names = row["failing_templates"]
        for template in names if isinstance(names, list) else ():
            failing.setdefault(template, []).append(str(row["name"]))
    for template, names in sorted(failing.items()):
        text = f"workers of template {template} end as soon as they start on {listed(names)}"
        yield fault("worker start", text, cure=CONDITIONS["crash_loop"].cure)
    if hosts and not failing:
        yield fine("worker start", "workers start on every reachable host")


def _other_slots(hosts: list[dict[str, Any]]) -> Iterator[Finding]:
    """Templates whose workers run another number of jobs at once than host.toml says."""
    found: dict[tuple[str, int, int], list[str]] = {}
    for row in hosts:
        for each in row["templates"]:
            if (written := each.get("written_slots")) is not None:
                found.setdefault((each["name"], each["slots"], written), []).append(str(row["name"]))
    for (template, slots, written), names in sorted(found.items()):
        text = f"workers of template {template} run {slots} jobs at once on {listed(names)}, and slots = {written}"
        cure = f"write slots = {slots} in host.toml, or have the workers run {written} at once, as by --concurrency"
        yield warning("slots", text, cure=cure)


def queue_findings(found: Installation) -> Iterator[Finding]:
    """Queues that profiles name and that nobody has ever read."""
    unserved = [row["queue"] for row in found.queues if row["pool"] is None]
    unseen = [
        row
        for row in found.queues
        if row["pool"] is not None and row["sample_age_s"] is None and not row["event_sources"]
    ]
    for row in unseen:
        text = f"profile {row['pool']} names queue {row['queue']}, which no collector has read"
        text = f"{text};{near(row['queue'], unserved)}".rstrip(";")
        yield warning("queue", text, cure=CONDITIONS["unlisted"].cure)
    if found.queues and not unseen:
        yield fine("queue", "every queue that a profile names has been read")


def cut_findings(found: Installation) -> Iterator[Finding]:
    """Deadlines, and bounds of libraries, that cut jobs which take no longer than many others."""
    for row in found.profiles:
        for text in row.get("early_cuts", ()):
            cure = "change host.toml on the hosts that have the template: docs/how-to/stop-workers.md"
            yield warning("deadline", f"pool {row['pool']}: {text}", cure=cure)


def pool_findings(found: Installation) -> Iterator[Finding]:
    """Pools whose jobs wait too long, where nothing of the installation says why, and those that wait for a person."""
    paused_manually = {row["pool"] for row in found.profiles if row["pause"]}
    for row in found.pools:
        pool = row["pool"]
        if jobs := held_jobs(row):
            end = f"`headway resume {pool}` ends the pause" if pool in paused_manually else "its profile says so"
            yield remark("pause", f"pool {pool} is paused: {jobs}; {end}")
        if row["state"] == "breaching" and not found.health["reasons"]:
            text = f"pool {row['pool']} breaches its objective: {'; '.join(row['causes'])}"
            yield warning("objective", text, cure=CONDITIONS["breaching"].cure.replace("POOL", row["pool"]))
