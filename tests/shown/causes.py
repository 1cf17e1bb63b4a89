"""What may go wrong, how to make it so, and which words of which view name it."""

import re
import signal
from dataclasses import dataclass

from shown.acts import (
    Act,
    await_end_of_token,
    break_upkeep,
    dropped,
    each_host,
    end_broker,
    end_postgres,
    fail,
    flush,
    killed,
    lock_buckets,
    mend_upkeep,
    nothing,
    renew_collector,
    replaced,
    revoke_collector,
    served,
    short_lived,
    signalled,
    skew,
    start_broker,
    start_postgres,
    started,
    to_all,
    together,
    unlock_buckets,
    with_errands,
    with_reports,
    without_errands,
)
from shown.site import HOSTS, end

LEASE_S = 45.0
SHOWN_WITHIN_S = 15.0
HOST_WITHIN_S = LEASE_S + 5.0
SHARE_WITHIN_S = 60.0  # of jobs that fail, and of workers that end too early


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that goes wrong."""

    name: str
    about: str
    """In words, for the table."""
    begin: Act
    end: Act = nothing
    prepare: Act = nothing
    """What it takes to be able to; the site is well before and after."""
    says: str
    """A pattern of which the dashboard, `top` and health each say some of."""
    kind: str
    """What `/metrics` and the alerts call it: a label of theirs, or the name of an alert."""
    red_within_s: float = SHOWN_WITHIN_S
    named_within_s: float = SHOWN_WITHIN_S
    group: str = "apart"
    """Causes of one group share a site."""
    needs_spark: bool = False
    needs_disk: bool = False
    begins_away: bool = False
    """Whether the control plane is not there when it begins."""
    is_awaited: bool = False
    """Whether it comes by itself, when ``begin`` returns."""

    def names(self, view: str, sentence: str) -> bool:
        """Whether what a view shows names this cause."""
        if view in {"/metrics", "alerts"}:
            return re.search(self.kind, sentence) is not None
        return re.search(self.says, sentence, re.IGNORECASE) is not None


SILENT = r"not responding: no heartbeat|crashed|was stopped|hangs in a batch"
UNREAD = r"no queue that a profile names has been read for|were last read .* ago: see whether `headway collect`"
AWAY = r"unreachable|no host is reachable|no reachable host"
NO_ANSWER = "no answer|Connection lost"

CAUSES = (
    Cause(
        name="pipeline-jvm-stopped",
        about="the pipeline's JVM is stopped (SIGSTOP)",
        begin=lambda site: end(site.jvm(), signal.SIGSTOP),
        end=lambda site: end(site.jvm(), signal.SIGCONT),
        says=r"not responding: no heartbeat",
        kind="pipeline",
        needs_spark=True,
    ),
    Cause(
        name="pipeline-jvm-killed",
        about="the pipeline's JVM is killed",
        begin=lambda site: end(site.jvm(), signal.SIGKILL),
        end=replaced("pipeline"),
        says=r"crashed",
        kind="pipeline",
        needs_spark=True,
    ),
    Cause(
        name="pipeline-killed",
        about="the pipeline is killed, its JVM with it",
        begin=killed("pipeline"),
        end=started("pipeline"),
        says=r"not responding: no heartbeat",
        kind="pipeline",
    ),
    Cause(
        name="pipeline-stopped",
        about="the pipeline's own process is stopped (SIGSTOP)",
        begin=signalled("pipeline", signal.SIGSTOP),
        end=signalled("pipeline", signal.SIGCONT),
        says=r"not responding: no heartbeat",
        kind="pipeline",
    ),
    Cause(
        name="batch-hangs",
        about="the pipeline answers, and a micro-batch hangs: its table is locked",
        begin=lock_buckets,
        end=unlock_buckets,
        says=r"hangs in a batch: it answers",
        kind="pipeline",
    ),
    Cause(
        name="collector-killed",
        about="the collectors are killed",
        begin=killed("collect"),
        end=started("collect"),
        says=UNREAD,
        kind="broker",
    ),
    Cause(
        name="collector-stopped",
        about="the collectors are stopped (SIGSTOP)",
        begin=signalled("collect", signal.SIGSTOP),
        end=signalled("collect", signal.SIGCONT),
        says=UNREAD,
        kind="broker",
    ),
    Cause(
        name="agent-killed",
        about="the agent of one of two hosts is killed",
        begin=killed("agent-beta"),
        end=started("agent-beta"),
        says="unreachable",
        kind="host|silent",
        red_within_s=HOST_WITHIN_S,
        named_within_s=HOST_WITHIN_S,
    ),
    Cause(
        name="agent-stopped",
        about="the agent of one of two hosts is stopped (SIGSTOP)",
        begin=signalled("agent-beta", signal.SIGSTOP),
        end=signalled("agent-beta", signal.SIGCONT),
        says="unreachable",
        kind="host|silent",
        red_within_s=HOST_WITHIN_S,
        named_within_s=HOST_WITHIN_S,
    ),
    Cause(
        name="agent-partitioned",
        about="one of two hosts is cut off from the control plane",
        begin=lambda site: site.proxy.cut(),
        end=lambda site: site.proxy.mend(),
        says="unreachable",
        kind="host|silent",
        red_within_s=HOST_WITHIN_S,
        named_within_s=HOST_WITHIN_S,
    ),
    Cause(
        name="broker-stopped",
        about="one of two brokers does not answer (SIGSTOP)",
        begin=lambda site: end(site.brokers["second"].pid, signal.SIGSTOP),
        end=lambda site: end(site.brokers["second"].pid, signal.SIGCONT),
        says=r"1 of 2 brokers has not been read|were last read .* reaches broker 'second'",
        kind="broker",
    ),
    Cause(
        name="broker-down",
        about="one of two brokers is away: connections are refused",
        begin=end_broker("second"),
        end=start_broker("second"),
        says=r"1 of 2 brokers has not been read|were last read .* reaches broker 'second'",
        kind="broker",
    ),
    Cause(
        name="brokers-down",
        about="every broker is away",
        begin=together(end_broker("redis"), end_broker("second")),
        end=together(start_broker("redis"), start_broker("second")),
        says=UNREAD,
        kind="broker",
    ),
    Cause(
        name="broker-flushed",
        about="a broker is flushed while 35 jobs and more wait",
        prepare=with_reports,
        begin=flush,
        end=dropped("reports"),
        says=r"waiting jobs (left its queues|before their start)|lost waiting jobs",
        kind="lost_jobs|JobsLost",
    ),
    Cause(
        name="postgres-down",
        about="Postgres is away",
        begin=end_postgres,
        end=start_postgres,
        says="Postgres",
        kind="Postgres|HeadwayAway",
    ),
    Cause(
        name="postgres-hangs",
        about="Postgres does not answer (SIGSTOP)",
        begin=to_all(lambda site: site.postgres_pids(), signal.SIGSTOP),
        end=to_all(lambda site: site.postgres_pids(), signal.SIGCONT),
        says="Postgres",
        kind="Postgres|HeadwayAway",
    ),
    Cause(
        name="disk-full",
        about="the disk of the event log is full",
        begin=lambda site: site.fill_log_disk(),
        end=lambda site: site.free_log_disk(),
        says=r"telemetry is refused: the disk of the event log",
        kind="event_log",
        needs_disk=True,
    ),
    Cause(
        name="jobs-fail",
        about="every job of a pool fails",
        prepare=with_errands,
        begin=fail,
        end=without_errands,
        says=r"jobs \(\d+ %\) failed in the last|too many failing jobs",
        kind="failing",
        red_within_s=SHARE_WITHIN_S,
        named_within_s=SHARE_WITHIN_S,
    ),
    Cause(
        name="template-missing",
        about="no host has the template of a pool",
        begin=served("nowhere", workers_min=1),
        end=dropped("nowhere"),
        says=r"no reachable host (has template|to run on)",
        kind="no_host",
    ),
    Cause(
        name="crash-loop",
        about="the workers of a pool end as they begin",
        begin=served("brittle", workers_min=1),
        end=dropped("brittle"),
        says=r"crash",
        kind="crash_loop",
        red_within_s=SHARE_WITHIN_S,
        named_within_s=SHARE_WITHIN_S,
    ),
    Cause(
        name="hosts-full",
        about="no capacity: a pool wants six workers, and hosts have room for two",
        begin=served("large", workers_min=6, workers_max=6),
        end=dropped("large"),
        says=r"hosts have room for|more workers than hosts have room for",
        kind="capacity|HostsMissing",
    ),
    Cause(
        name="no-host",
        about="no capacity: every host is drained",
        begin=each_host("drain"),
        end=each_host("uncordon"),
        says=r"is cordoned or draining|no reachable host",
        kind="no_host",
    ),
    Cause(
        name="token-revoked",
        about="the collectors' token is revoked",
        begin=revoke_collector,
        end=renew_collector,
        says=r"revoked or has expired",
        kind="credentials",
    ),
    Cause(
        name="token-expired",
        about="the collectors' token expires",
        prepare=short_lived,
        begin=await_end_of_token,
        is_awaited=True,
        end=renew_collector,
        says=r"revoked or has expired",
        kind="credentials",
    ),
    Cause(
        name="sender-clock",
        about="the clock of the collectors is set forward by 5 min",
        begin=skew("collect", 300),
        end=skew("collect", 0),
        says=r"the clock of 1 sender of telemetry is wrong|the clock of 2 senders",
        kind="clock",
    ),
    Cause(
        name="upkeep-fails",
        about="upkeep cannot make tomorrow's partition (the control plane is restarted)",
        prepare=break_upkeep,
        begins_away=True,
        begin=started("control"),
        end=mend_upkeep,
        says=r"upkeep of partitions fails",
        kind="upkeep",
        red_within_s=30.0,
        named_within_s=30.0,
    ),
    Cause(
        name="agents-killed",
        about="the agents of all hosts are killed",
        begin=together(*(killed(f"agent-{host}") for host in HOSTS)),
        end=together(*(started(f"agent-{host}") for host in HOSTS)),
        says=AWAY,
        kind="host|silent",
        red_within_s=HOST_WITHIN_S,
        named_within_s=HOST_WITHIN_S,
    ),
    Cause(
        name="control-stopped",
        about="the control plane is stopped (SIGSTOP)",
        begin=signalled("control", signal.SIGSTOP),
        end=signalled("control", signal.SIGCONT),
        says=f"{NO_ANSWER}|gone quiet|does not answer|no control plane answers",
        kind="HeadwayAway|no answer",
    ),
    Cause(
        name="certificate-expired",
        about="the control plane's certificate has expired",
        begin=lambda site: site.certify(days=-1),
        end=lambda site: site.certify(),
        says=r"certificate",
        kind="certificate|HeadwayAway",
        group="encrypted",
    ),
    Cause(
        name="control-clock",
        about="the clock of the control plane is set forward by an hour",
        begin=skew("control", 3600),
        says=r"the clock of (this control plane|2 senders|1 sender)",
        kind="clock",
        group="clock",
    ),
)
