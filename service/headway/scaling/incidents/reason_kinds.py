"""Kinds of reasons why an installation is degraded, by what each is about."""

from typing import Literal

InstallationReason = Literal[
    "leader",
    "pipeline",
    "broker",
    "collectors",
    "event_log",
    "upkeep",
    "clock",
    "certificate",
    "credentials",
]
HostReason = Literal["host", "host_disk", "host_file"]
PoolReason = Literal[
    "capacity",
    "unstarted",
    "crash_loop",
    "failing",
    "no_host",
    "suspended",
    "bottleneck",
    "lost_jobs",
    "perhaps_lost_jobs",
    "cut_jobs",
    "poison_jobs",
    "unable_workers",
]
ReasonKind = Literal[InstallationReason, HostReason, PoolReason]
