"""What to do about each thing that the control plane says is wrong with the installation."""

from collections.abc import Mapping

OF_KINDS: Mapping[str, str] = {
    "leader": "start `headway control`; where one runs, its log says why it does not lead: it must reach Postgres",
    "pipeline": (
        "start `headway pipeline`, or read its log (with `headway up`: logs/pipeline.log of the data folder); "
        "`headway pipeline rebuild` replaces a checkpoint that no stream can continue from"
    ),
    "broker": (
        "start `headway collect`; `headway collect --check` shows whether it reaches its brokers and may read them"
    ),
    "collectors": "end every collector of that broker but one: `headway describe queue QUEUE` names them",
    "event_log": (
        "make room on the disk of HEADWAY_EVENT_LOG, or mount the folder there that belongs to this database; "
        "producers keep their events and send them again"
    ),
    "upkeep": "grant the role what docs/how-to/postgres-role.md lists, or read the log of the role that is named",
    "clock": "synchronize the clocks of the machines, as with `timedatectl set-ntp true`, and restart nothing",
    "certificate": (
        "make another: `headway keys server NAME` for the control plane, `headway keys client NAME` for a host; "
        "both take up the new files by themselves"
    ),
    "credentials": (
        "`headway token list` names the tokens, `headway audit` the addresses: make another with "
        "`headway token create` and put it into that role's HEADWAY_TOKEN_FILE"
    ),
    "host": (
        "start the agent on that host, or read its log there; if the host is gone for good: "
        "`headway host forget HOST --reason TEXT`"
    ),
    "host_disk": "make room on that host, or correct the owner of the agent's folder; the agent tries again every 5 s",
    "host_file": "`headway agent check` on that host names the mistakes; a corrected host.toml is read by itself",
    "capacity": "add a host, or lower `cpu_cores` and `memory_bytes` of the template where workers take less",
    "unstarted": "read the agent's log on the hosts of that pool: it says what keeps workers from starting",
    "crash_loop": (
        "read the last lines of the workers' output, in workers/ of the agent's state folder; `headway agent check` "
        "shows the command that is run; after a change of host.toml the agent tries again immediately"
    ),
    "failing": "read the workers' output for what the jobs raise; more workers do not help while jobs fail",
    "no_host": (
        "add [templates.NAME] to the host.toml of a host and start its agent, or correct `template` in the profile"
    ),
    "suspended": (
        "`headway explain POOL` says who keeps its workers from taking jobs: `rq resume` ends `rq suspend`, and "
        "`celery control add_consumer QUEUE` what `cancel_consumer` began"
    ),
    "bottleneck": "`headway explain POOL` says what limits it and what cures it; more workers do not",
    "lost_jobs": (
        "find out who flushed the broker or deleted the jobs; a Redis that keeps jobs needs `appendonly yes` and "
        "`maxmemory-policy noeviction`"
    ),
    "perhaps_lost_jobs": (
        "see whether these jobs expire (Celery's `expires`, RQ's `ttl`, a time to live in the broker); where they do "
        "not, the broker was flushed or somebody deleted them. Workers of a Celery that an agent starts report which "
        "tasks expire"
    ),
    "cut_jobs": (
        "see `headway events` for the jobs and why, and whether they run again; without `drain_timeout_s` in host.toml "
        "Headway kills no worker, and a host needs the memory that its workers take"
    ),
    "poison_jobs": (
        "remove the job in its library: `celery -A APP control revoke ID`, or `Job.fetch(ID, connection).delete()` of "
        "RQ; Headway removes no job"
    ),
    "unable_workers": (
        "see why on its host: a process that was stopped goes on with `kill -CONT PID`; consumers that were cancelled "
        "come back with `celery -A APP control add_consumer QUEUE`, or with a new worker"
    ),
}
"""Kind of a reason of `/v1/health` -> what to do."""

OF_UNKNOWN_KIND = "see what docs/reference/http-api.md says of health; a later control plane has named this"
