"""The conditions of the installation: one row each, and what health says where one is true.

No sentence names a pool, a queue or a host: health is shown without a token.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial

from headway.scaling.conditions.condition import Alert, Condition, Severity, Subject
from headway.scaling.conditions.host_table import are, expired_certificates
from headway.scaling.conditions.installation_facts import (
    CLOCK_OFF_S,
    ENDED_SHOWN_S,
    EXPIRES_WITHIN_S,
    HEALTH_PARTITION_DAYS_MIN,
    HEALTH_ROLLUPS_LATE_S,
    HEALTH_UNREAD_LATE_S,
    WRONG_SHOWN_S,
    InstallationFacts,
)
from headway.scaling.explanations.phrases import counted, duration

ROLE_PAGE = "docs/how-to/postgres-role.md"


def leader(facts: InstallationFacts) -> Iterator[str]:
    """That nobody leads."""
    silent_s = facts.known.leader_age_s
    if silent_s is None:
        yield "no control plane has led yet: nothing is decided"
    elif not facts.is_led:
        last = f"the last one, {facts.known.leader}, has sent no heartbeat for {silent_s:.0f} s"
        yield f"no control plane leads: {last}"


def pipeline(facts: InstallationFacts) -> Iterator[str]:
    """What is not well with each pipeline, and that events wait for them."""
    if not facts.known.pipelines:
        yield "no pipeline has written yet: nothing is measured; start `headway pipeline`"
    for row in facts.known.pipelines:
        if row.trouble is not None:
            said = row.trouble.format_map(asdict(row) | {"stage": row.stage.replace("_", " ")})
            yield f"pipeline {row.pipeline} {said}"
    oldest_s = facts.process.oldest_unread_s or 0.0
    if oldest_s > HEALTH_UNREAD_LATE_S and not facts.is_telemetry_refused:
        yield f"{facts.process.unread_files} files of events wait for the pipeline, the oldest for {oldest_s:.0f} s"


def broker(facts: InstallationFacts) -> Iterator[str]:
    """How many brokers are not read, and for how long."""
    late_s, number = facts.unread_brokers_s, len(facts.known.read_ages_s)
    if late_s and len(late_s) == number:
        read = f"no queue that a profile names has been read for {min(late_s):.0f} s"
        yield f"{read}: check that `headway collect` runs and reaches its broker"
    elif late_s:
        some = f"{len(late_s)} of {number} brokers {'has' if len(late_s) == 1 else 'have'} not been read for"
        yield f"{some} {max(late_s):.0f} s: check that `headway collect` reaches it; `headway top` names it"


def collectors(facts: InstallationFacts) -> Iterator[str]:
    """How many brokers are polled by several."""
    if shared := facts.known.shared_connections:
        polled = f"{are(shared, 'broker')} polled by several collectors, of which one counts, the others stand by"
        yield f"{polled}: end them; `headway describe queue` names them"


def event_log(facts: InstallationFacts) -> Iterator[str]:
    """Why telemetry is refused."""
    if facts.process.refused is not None:  # which says more: that the disk is full, for one
        yield f"telemetry is refused: {facts.process.refused}"
    elif not facts.process.has_event_log:
        yield "the event log is not the one that this database knows: telemetry is refused"


def upkeep(facts: InstallationFacts) -> Iterator[str]:
    """What of upkeep is not done."""
    known = facts.known
    for row in known.pipelines:
        if row.lacks is not None:
            lacking = f"pipeline {row.pipeline} lacks a right in Postgres and leaves out {row.lacks}"
            yield f"{lacking}: {ROLE_PAGE} says what its role needs"
    if known.partition_days is not None and known.partition_days < HEALTH_PARTITION_DAYS_MIN:
        left = f"decisions can be stored for {max(0, known.partition_days)} days more"
        why = "upkeep fails, most likely because a right in Postgres is missing"
        yield f"{left}: {why}; see the control plane's log and {ROLE_PAGE}"
    if known.rollups_behind_s is not None and known.rollups_behind_s > HEALTH_ROLLUPS_LATE_S:
        late = f"metrics are not rolled up for {duration(known.rollups_behind_s)}, and old rows are not deleted"
        yield f"{late}: see the pipeline's log, and {ROLE_PAGE} where it lacks a right"
    for part, why in facts.process.failing_upkeep.items():
        yield f"upkeep of {part} fails: {why}; see the control plane's log"


def clock(facts: InstallationFacts) -> Iterator[str]:
    """Whose clocks differ, and by how much."""
    process = facts.process
    if off_s := facts.clock_off_s:
        way = "ahead of" if off_s > 0 else "behind"
        off = f"the clock of this control plane is {duration(abs(off_s))} {way} that of Postgres"
        yield f"{off}: ages and waits are off by as much; set both right"
    if process.wrong_clocks_s:
        farthest_s, senders = process.wrong_clocks_s[0], counted(len(process.wrong_clocks_s), "sender")
        way = "behind" if farthest_s > 0 else "ahead of"
        off = f"the clock of {senders} of telemetry is wrong, {duration(abs(farthest_s))} {way} this control plane's"
        yield f"{off}: times of readings and jobs are corrected or off by as much"
    elif process.future_times:
        times = f"{counted(process.future_times, 'time')} of jobs in the last {duration(WRONG_SHOWN_S)}"
        whose = "the clock of a host that runs jobs, or of a sender, is ahead"
        yield f"{times} lay in the future and had to be corrected: {whose}"
    elif process.backward_waits:
        jobs = f"{counted(process.backward_waits, 'job')} of the last {duration(WRONG_SHOWN_S)} began before"
        whose = "the clock of a host that runs jobs is behind, and pickup times are too short by as much"
        yield f"{jobs} being enqueued, by the clocks of both: {whose}"


def certificate(facts: InstallationFacts) -> Iterator[str]:
    """When the certificate of this control plane ends, or has."""
    left_s = facts.process.certificate_left_s
    if left_s is not None and left_s <= EXPIRES_WITHIN_S:
        when = (
            f"expires in {duration(left_s)}" if left_s > 0 else f"expired {duration(-left_s)} ago: no client takes it"
        )
        yield f"the control plane's certificate {when}; `headway keys server NAME` makes another"


def credentials(facts: InstallationFacts) -> Iterator[str]:
    """Which tokens expire soon, and how many calls came with what has ended."""
    known, calls = facts.known, facts.process.ended_calls
    if known.expiring_tokens and known.expires_in_s is not None:
        is_one = known.expiring_tokens == 1
        when = f"{'' if is_one else 'the first '}in {duration(known.expires_in_s)}"
        what = f"{counted(known.expiring_tokens, 'token')} {'expires' if is_one else 'expire'} within a day, {when}"
        yield f"{what}: `headway token list` names what to replace"
    if calls:
        used = f"{counted(calls, 'call')} used a token or credential that was revoked or has expired"
        who = "the audit log says from where: give that role another one, or end it"
        yield f"{used} in the last {duration(ENDED_SHOWN_S)}; {who}"


_of = partial(Condition, subject=Subject.INSTALLATION, severity=Severity.PAGE)
OF_INSTALLATION: Sequence[Condition] = (
    _of(
        name="away",
        what="a control plane is away, its Postgres is, or its certificate has expired",
        cure="read its log, and ask `headway get health`",
        alert=Alert(
            "HeadwayAway",
            'up{job="headway"} == 0',
            summary="the control plane {{ $labels.instance }} is away, or its Postgres is",
        ),
    ),
    _of(
        name="leader",
        what="no control plane leads: nothing is decided, and no incident opens",
        cure="start `headway control`; where one runs, its log says why it does not lead: it must reach Postgres",
        alert=Alert("HeadwayNoLeader", "headway_leader_silent_seconds > 10"),
        seen_after="10 s",
        of_installation=leader,
    ),
    _of(
        name="pipeline",
        what="the pipeline is stopped, crashed, not responding, starting, or hangs in a batch",
        cure="start `headway pipeline`, or read its log (with `headway up`: logs/pipeline.log of the data folder); "
        "`headway pipeline rebuild` replaces a checkpoint that no stream can continue from",
        alert=Alert(
            "HeadwayPipelineSilent",
            "headway_pipeline_beat_age_seconds > 10",
            summary="the pipeline {{ $labels.pipeline }} does not answer",
        ),
        seen_after="5 to 10 s",
        of_installation=pipeline,
    ),
    _of(
        name="broker",
        what="no queue of a broker connection has been read: `headway collect` or the broker is away",
        cure="start `headway collect`; `headway collect --check` shows whether it reaches its brokers and may read "
        "them",
        seen_after="10 s",
        of_installation=broker,
    ),
    _of(
        name="collectors",
        what="several collectors poll one broker connection: one counts, the others stand by",
        cure="end every collector of that broker but one: `headway describe queue QUEUE` names them",
        seen_after="10 s",
        of_installation=collectors,
    ),
    _of(
        name="event_log",
        what="telemetry is refused: the disk is full, or the event log is another one",
        cure="make room on the disk of HEADWAY_EVENT_LOG, or mount the folder there that belongs to this database; "
        "producers keep their events and send them again",
        seen_after="immediately",
        of_installation=event_log,
    ),
    _of(
        name="upkeep",
        what="upkeep fails, or decisions soon have no place to be stored",
        cure=f"grant the role what {ROLE_PAGE} lists, or read the log of the role that is named",
        seen_after="upkeep's next run, 10 min at most",
        of_installation=upkeep,
    ),
    _of(
        name="clock",
        what=f"the clocks of a control plane and Postgres differ by more than {CLOCK_OFF_S:g} s, or that of a "
        "sender or host is wrong",
        cure="synchronize the clocks of the machines, as with `timedatectl set-ntp true`, and restart nothing",
        seen_after="immediately",
        of_installation=clock,
    ),
    _of(
        name="certificate",
        what="the certificate of a control plane ends within a day or has ended, or that of a host that does not "
        "report has expired",
        cure="make another: `headway keys server NAME` for the control plane, `headway keys client NAME` for a host; "
        "both take up the new files by themselves",
        seen_after="immediately",
        of_installation=certificate,
        of_hosts=expired_certificates,
    ),
    _of(
        name="credentials",
        what="a token expires within a day, or calls use a token or credential that was revoked or has expired",
        cure="`headway token list` names the tokens, `headway audit` the addresses: make another with "
        "`headway token create` and put it into that role's HEADWAY_TOKEN_FILE",
        seen_after="immediately",
        of_installation=credentials,
    ),
    _of(
        name="names_refused",
        what="a sender sends more names than there is room for",
        severity=Severity.TICKET,
        cure="the control plane's log names the sender; docs/reference/settings.md lists the bounds",
        alert=Alert(
            "HeadwayNamesRefused",
            "increase(headway_refused_names_total[10m]) > 0",
            for_s=0,
            summary="more {{ $labels.kind }} are sent than there is room for",
        ),
    ),
)
