"""The roles that measure, read and run: each is killed, stopped or cut off."""

import signal

from shown.acts import killed, lock_buckets, replaced, signalled, started, stop_and_answer, unlock_buckets
from shown.cause import HOST_WITHIN_S, Cause
from shown.site import end

UNREAD = r"no queue that a profile names has been read for|were last read .* ago: see whether `headway collect`"

ROLES = (
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
        named_within_s=HOST_WITHIN_S,
    ),
    Cause(
        name="agent-stopped",
        about="the agent of one of two hosts is stopped (SIGSTOP)",
        begin=signalled("agent-beta", signal.SIGSTOP),
        end=signalled("agent-beta", signal.SIGCONT),
        says="unreachable",
        kind="host|silent",
        named_within_s=HOST_WITHIN_S,
    ),
    Cause(
        name="agent-stopped-answered",
        about="an agent is stopped (SIGSTOP) and its poll answered at once, so that no call is left that could end",
        begin=stop_and_answer("beta"),
        end=signalled("agent-beta", signal.SIGCONT),
        says="lost the connection",
        kind="host|silent",
    ),
    Cause(
        name="agent-partitioned",
        about="one of two hosts is cut off from the control plane",
        begin=lambda site: site.proxy.cut(),
        end=lambda site: site.proxy.mend(),
        says="unreachable",
        kind="host|silent",
        named_within_s=HOST_WITHIN_S,
    ),
)
