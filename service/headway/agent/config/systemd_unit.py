"""The systemd unit of an agent: restarted whenever it ends, its workers left alone, no more rights than needed."""

from dataclasses import asdict, dataclass
from pathlib import Path

from headway.errors import Invalid

STATE_NAME = "headway-agent"
ROOT_CAPABILITIES = (
    "CAP_SETUID",  # become the users of templates
    "CAP_SETGID",
    "CAP_CHOWN",  # give each worker the pipe that it reports through
    "CAP_KILL",  # signal their workers
    "CAP_SYS_NICE",  # set their niceness
    "CAP_DAC_READ_SEARCH",  # enter their folders, and read the kernel's facts about their processes
    "CAP_SYS_PTRACE",
)
"""What is left to an agent of root. One of another user has nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a unit is written from."""

    program: Path
    """``headway`` itself, by its whole path."""
    host_file: Path
    control: str
    user: str
    environment_file: Path
    """Where settings are; the file need not exist."""


def unit_text(unit: Unit) -> str:
    """The file for ``/etc/systemd/system``.

    Raises:
        Invalid: a path or a name holds characters that a unit file cannot hold.
    """
    words = (str(unit.program), str(unit.host_file), unit.control, unit.user, str(unit.environment_file))
    if wrong := [word for word in words if set(word) & set(" \t\n\"'%$\\;")]:
        raise Invalid(f"{wrong[0]!r} has a character that a systemd unit would read as its own: choose another place")
    capabilities = " ".join(ROOT_CAPABILITIES) if unit.user in {"root", "0"} else ""
    return _TEXT.format(state=STATE_NAME, capabilities=capabilities, **asdict(unit))


_TEXT = """\
[Unit]
Description=Headway agent: starts, drains and stops the workers of this host
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
User={user}
# HEADWAY_JOIN_TOKEN_FILE=…, or other settings: the names of files, never what they hold.
EnvironmentFile=-{environment_file}
# /var/lib/{state}, owned by the user: which workers run, so that the next agent takes them over.
StateDirectory={state}
StateDirectoryMode=0700
ExecStartPre={program} agent check --host-file {host_file} --state-dir /var/lib/{state} --offline
ExecStart={program} agent --host-file {host_file} --control {control} --state-dir /var/lib/{state}
# host.toml is read again; the agent notices a change by itself as well, a little later.
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=2
# Only the agent is signalled: workers go on over a restart or an upgrade, and the next agent takes them over.
KillMode=process
TimeoutStopSec=30
# One worker that takes too much memory is not the end of all.
OOMPolicy=continue
TasksMax=infinity
LimitNOFILE=65536
# What holds for the agent holds for its workers, and MemoryMax= would, too: docs/how-to/systemd-units.md lists the
# omitted options and the reasons. With the next two lines no worker can call sudo, or another program that becomes
# another user.
NoNewPrivileges=yes
CapabilityBoundingSet={capabilities}
ProtectSystem=full
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"""
