"""Every table, once. A new database is made from this module; a test proves that migrations lead an older one to it.

Columns ending ``_at`` are Postgres's clock; columns ending ``_s`` are seconds: a duration, or Unix seconds reported by
a producer. Leases and ages use the former only.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    Table,
    Text,
    Uuid,
    case,
    cast,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import SchemaItem

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _stamp(name: str, *, index: bool = False) -> Column[datetime]:
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now(), index=index)


def seconds(value: BindParameter[float] | float) -> ColumnElement[Any]:
    """An interval of so many seconds."""
    return func.make_interval(0, 0, 0, 0, 0, 0, value)  # seconds are the last of seven


def epoch_s(value: ColumnElement[Any]) -> ColumnElement[float]:
    """The Unix seconds of a moment, or the seconds of an interval."""
    return cast(func.extract("epoch", value), Double)


def age_s(moment: ColumnElement[Any]) -> ColumnElement[float]:
    """Seconds since then, 0 where it is still to come; ``NULL`` where the moment is."""
    # Of a NULL Postgres would make the greatest of the others, and "not known" must not become 0.
    return case((moment.is_not(None), func.greatest(0, epoch_s(func.now() - moment))))


def _table(name: str, *parts: SchemaItem, **options: Any) -> Table:
    return Table(name, metadata, *parts, **options)


def _single_row(name: str, *columns: Column[Any]) -> Table:
    """A table of one row."""
    is_only = Column("is_only", Boolean, primary_key=True, server_default="true")
    return _table(name, is_only, *columns, CheckConstraint("is_only", name="one_row"))


# --- the installation and its leader ---------------------------------------------------------------------------------

cluster = _single_row(
    "cluster",
    # One row. A new database draws the id; epochs and revisions mean something only beside it.
    Column("cluster_id", Uuid, nullable=False, server_default=func.gen_random_uuid()),
    Column("event_log_location", Text),
    Column("event_log_marker", Uuid),
    _stamp("created_at"),
)

leader_epoch = _single_row(
    "leader_epoch",
    # One row. Every leader transaction locks it `for share where epoch = :mine`: the next leader's bump waits for it.
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    Column("leader", Text, nullable=False, server_default=""),
    Column("backend_pid", Integer),
    _stamp("taken_at"),
    # What is known of hosts that have not reported since may be of a backup, and older than what they do.
    Column("hosts_heard_from", DateTime(timezone=True), nullable=False, server_default="-infinity"),
)

leader_heartbeat = _single_row(
    "leader_heartbeat",
    # A row of its own, so that renewing the lease never waits for a tick that holds the epoch row.
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    _stamp("renewed_at"),
)

audit_log = _table(
    "audit_log",
    Column("audit_id", Uuid, primary_key=True, server_default=func.gen_random_uuid()),
    _stamp("acted_at"),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("before", JSONB),
    Column("after", JSONB),
    # From where it was done, where somebody called; of IPv6 the network.
    Column("address", Text),
    Index("ix_audit_log_acted_at", "acted_at", "audit_id"),
)

# --- what people want ------------------------------------------------------------------------------------------------

profiles = _table(
    "profiles",
    Column("pool", Text, primary_key=True),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("body", JSONB, nullable=False),
    _stamp("created_at"),
    _stamp("updated_at"),
    # Set by hand beside the profile, so that applying it again undoes neither.
    Column("override", JSONB(none_as_null=True)),
    Column("pause", Text),
    Column("pause_reason", Text),
    Column("pause_until_s", Double),
    # Raised by hand: workers of an older generation are replaced.
    Column("restart_generation", BigInteger, nullable=False, server_default="0"),
    # The pool whose profile this one is a copy of, for one queue that its patterns match; null: people wrote it.
    Column("made_of", Text),
)

profile_queues = _table(
    "profile_queues",
    # A queue belongs to exactly one pool: the primary key says so.
    Column("queue", Text, primary_key=True),
    Column("pool", Text, ForeignKey("profiles.pool", ondelete="CASCADE"), nullable=False, index=True),
    # The place of its name or its pattern in the profile; queues of one rank go by name.
    Column("rank", Integer, nullable=False),
    # What matched it; null: the profile names it.
    Column("pattern", Text),
)
QUEUE_ORDER = (profile_queues.c.rank, profile_queues.c.queue.collate("C"))
"""The order of the queues of one pool."""

groups = _table(
    "groups",
    # Caps over several pools.
    Column("name", Text, primary_key=True),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("body", JSONB, nullable=False),
    _stamp("created_at"),
    _stamp("updated_at"),
)

# --- what happened ---------------------------------------------------------------------------------------------------

event_files = _table(
    "event_files",
    Column("file", Text, primary_key=True),
    Column("ingest", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    _stamp("recorded_at", index=True),
)

event_batches = _table(
    "event_batches",
    # The claim on a batch: the primary key lets exactly one ingest record it, in the transaction that records its file.
    Column("producer", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("file", Text),
    _stamp("claimed_at", index=True),
)

queues = _table(
    "queues",
    # Every queue that telemetry was taken for, and who named it first: names are bounded, of one sender and of all.
    Column("queue", Text, primary_key=True),
    Column("sent_by", Text, nullable=False, server_default=""),
    _stamp("seen_at"),
)

producers = _table(
    "producers",
    # Who sends under a producer's name: nobody else may claim its numbers. Without an owner: with HEADWAY_TOKEN, or
    # where no token is asked for.
    Column("producer", Text, primary_key=True),
    Column("sent_by", Text, nullable=False),
    Column("owner_sha256", Text),
    _stamp("seen_at"),
)

queue_samples = _table(
    "queue_samples",
    # The newest reading of each queue, straight from ingest: when Spark's rows are stale these may raise a target,
    # never lower it.
    Column("queue", Text, primary_key=True),
    Column("sampled_at_s", Double, nullable=False),
    # Null where only a lower bound is known, as the jobs in flight.
    Column("waiting_jobs", BigInteger),
    Column("in_flight_jobs", BigInteger),
    Column("delayed_jobs", BigInteger),
    Column("oldest_age_s", Double),
    Column("reserved_jobs", BigInteger),
    Column("oldest_age_max_s", Double),
    Column("reports_arrivals", Boolean),
    Column("reports_starts", Boolean),
    Column("reports_ends", Boolean),
    Column("poll_interval_s", Double),
    _stamp("received_at"),
    # Workers that the broker lists, whoever started them, and since when it has been so many without a gap.
    Column("listed_workers", BigInteger),
    Column("listed_since_s", Double),
    # What keeps workers from taking its jobs, by the word of the broker; null: the broker cannot say.
    Column("suspension", Text),
    # At most so many workers get its jobs at a time; null: no such bound is known.
    Column("useful_workers", BigInteger),
    # The broker itself drops a job that has waited so long; null: it does not, or nobody says so.
    Column("message_ttl_s", Double),
    # What becomes of a job whose worker died; null: the broker gives it back at once, or nobody says so.
    Column("redelivery", Text),
    Column("waiting_min_jobs", BigInteger),
    Column("in_flight_min_jobs", BigInteger),
    # When delayed jobs are due: [seconds from the reading, so many jobs within them], ascending.
    Column("due", JSONB, nullable=False, server_default="[]"),
)

listed_workers = _table(
    "listed_workers",
    # How many workers the broker listed of a queue, and from when until when. What goes on is in queue_samples; what is
    # in neither is not known.
    Column("queue", Text, primary_key=True),
    Column("from_s", Double, primary_key=True),
    Column("until_s", Double, nullable=False, index=True),
    Column("workers", BigInteger, nullable=False),
)

queue_counts = _table(
    "queue_counts",
    # The last report of counters that was taken, of each producer and queue: what they grow by is counted from here.
    Column("producer", Text, primary_key=True),
    Column("queue", Text, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("epoch", Text, nullable=False),
    Column("received_at_s", Double, nullable=False),
    Column("arrived_jobs", BigInteger),
    Column("started_jobs", BigInteger),
    Column("finished_jobs", BigInteger),
    Column("failed_jobs", BigInteger),
)

job_reports = _table(
    "job_reports",
    # Which job events each source reported in the last minutes, 8 bytes each: what two sources report counts once.
    Column("number", BigInteger, Identity(always=True), primary_key=True),
    Column("connection", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("ingest", Text, nullable=False),
    Column("keys", LargeBinary, nullable=False),
    _stamp("recorded_at", index=True),
    Index("ix_job_reports_connection_number", "connection", "number"),
)

event_sources = _table(
    "event_sources",
    # Who reports the job events of a queue, and when last: a collector by its producer, all other programs as one.
    Column("queue", Text, primary_key=True),
    Column("source", Text, primary_key=True),
    Column("arrivals_at", DateTime(timezone=True)),
    Column("starts_at", DateTime(timezone=True)),
    Column("ends_at", DateTime(timezone=True)),
)

collectors = _table(
    "collectors",
    # Who polls a connection: of several, the samples of the one count that has done so for the longest time.
    Column("connection", Text, primary_key=True),
    Column("producer", Text, primary_key=True),
    _stamp("began_at"),
    _stamp("seen_at"),
)

worker_activities = _table(
    "worker_activities",
    # What the broker reports of worker processes; joined to a host's workers by host name and pid.
    Column("host_name", Text, primary_key=True),
    Column("pid", BigInteger, primary_key=True),
    Column("is_busy", Boolean, nullable=False),
    Column("busy_since_s", Double),
    Column("ended_jobs", BigInteger),
    Column("running_jobs", BigInteger),
    Column("busy_queue", Text),
    _stamp("seen_at"),
)

# --- what Spark makes of it ------------------------------------------------------------------------------------------

bucket_revision = Sequence("bucket_revision", metadata=metadata)


def _measures() -> list[Column[Any]]:
    """What is kept of a queue or a job class, over whatever span."""
    return [
        Column("arrived_jobs", BigInteger, nullable=False, server_default="0"),
        Column("started_jobs", BigInteger, nullable=False, server_default="0"),
        Column("finished_jobs", BigInteger, nullable=False, server_default="0"),
        Column("failed_jobs", BigInteger, nullable=False, server_default="0"),
        Column("retried_attempts", BigInteger, nullable=False, server_default="0"),
        Column("retried_jobs", BigInteger, nullable=False, server_default="0"),
        Column("revoked_jobs", BigInteger, nullable=False, server_default="0"),
        Column("service_sum_s", Double, nullable=False, server_default="0"),
        Column("pickup_max_s", Double),
        # Sketches: index of a logarithmic bucket (scaling/measure.py) -> count. Merging adds.
        Column("service_sketch", JSONB, nullable=False, server_default="{}"),
        Column("pickup_sketch", JSONB, nullable=False, server_default="{}"),
        # The newest sample inside the bucket.
        Column("sampled_at_s", Double),
        Column("waiting_jobs", BigInteger),
        Column("in_flight_jobs", BigInteger),
        Column("delayed_jobs", BigInteger),
        Column("oldest_age_s", Double),
    ]


queue_buckets = _table(
    "queue_buckets",
    # Absolute values of one queue in one span of 5 s: writing a row twice changes nothing.
    Column("queue", Text, primary_key=True),
    Column("bucket_s", Double, primary_key=True, index=True),
    *_measures(),
    # Grows with every write, so that a reader asks only for what is new to it.
    Column("revision", BigInteger, nullable=False, index=True),
    _stamp("written_at"),
)


def _rollup(name: str) -> Table:
    """Rows of ``queue_buckets`` merged over longer spans, and rows of job classes, with a ``job_class``."""
    return _table(
        name,
        Column("queue", Text, primary_key=True),
        Column("job_class", Text, primary_key=True, server_default=""),
        # The index finds a span and what has expired. BRIN would be smaller for as long as nothing is deleted.
        Column("bucket_s", Double, primary_key=True, index=True),
        *_measures(),
    )


rollup_minutes = _rollup("rollup_minutes")
rollup_hours = _rollup("rollup_hours")

rollup_progress = _single_row(
    "rollup_progress",
    # How far buckets are rolled up: those of this revision and earlier, of minutes and hours that ended by these times.
    Column("revision", BigInteger, nullable=False, server_default="0"),
    Column("minutes_until_s", Double, nullable=False, server_default="0"),
    Column("hours_until_s", Double, nullable=False, server_default="0"),
    # Buckets that begin before are in queue_totals; 0: nothing was counted yet.
    Column("totals_until_s", Double, nullable=False, server_default="0"),
    # The minutes that ended by then are in pool_attainment; 0: nothing was counted yet.
    Column("attained_until_s", Double, nullable=False, server_default="0"),
)

queue_totals = _table(
    "queue_totals",
    # What each queue did since it was first counted: it only grows, for counters that no restart sets back.
    Column("queue", Text, primary_key=True),
    Column("arrived_jobs", BigInteger, nullable=False),
    Column("started_jobs", BigInteger, nullable=False),
    Column("finished_jobs", BigInteger, nullable=False),
    Column("failed_jobs", BigInteger, nullable=False),
    Column("retried_attempts", BigInteger, nullable=False, server_default="0"),
    Column("service_sum_s", Double, nullable=False),
    Column("service_sketch", JSONB, nullable=False),
    Column("pickup_sketch", JSONB, nullable=False),
)

pool_attainment = _table(
    "pool_attainment",
    # How many jobs of a pool started in five minutes, and how many of them later than their objective allows.
    Column("pool", Text, ForeignKey("profiles.pool", ondelete="CASCADE"), primary_key=True),
    Column("from_s", Double, primary_key=True, index=True),
    Column("jobs", BigInteger, nullable=False),
    Column("late_jobs", BigInteger, nullable=False),
)

queue_seasons = _table(
    "queue_seasons",
    # What each hour of the week brings, as scaling.season_record writes it in this version; what it was learned from.
    Column("queue", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("body", JSONB, nullable=False),
    Column("source", Text, nullable=False),
    Column("from_s", Double, nullable=False),
    Column("until_s", Double, nullable=False),
    _stamp("trained_at"),
)

pipeline_health = _table(
    "pipeline_health",
    # One row a pipeline: how far it is and how long its last micro-batch took.
    Column("pipeline", Text, primary_key=True),
    Column("batch_id", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("batch_s", Double, nullable=False),
    Column("newest_received_at_s", Double),
    Column("is_ready", Boolean, nullable=False, server_default="false"),
    _stamp("written_at"),
    # What it is doing: starting, restarting, rebuilding, warming_up, ready; or how it ended: stopped, crashed.
    Column("stage", Text, nullable=False, server_default="starting"),
    # How long ago the newest event of the last batch with any was received when its rows were written.
    Column("rows_lag_s", Double),
    # When it last answered, whether or not it had anything to write.
    Column("beat_at", DateTime(timezone=True)),
    # What it leaves out for want of a right in Postgres, and what that says.
    Column("lacks", Text),
)

# --- hosts and what they run -----------------------------------------------------------------------------------------

hosts = _table(
    "hosts",
    Column("host_id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("boot_id", Text, nullable=False, server_default=""),
    Column("credential_sha256", Text),
    Column("agent_version", Text, nullable=False, server_default=""),
    Column("cpu_cores", Double, nullable=False, server_default="0"),
    Column("memory_bytes", BigInteger, nullable=False, server_default="0"),
    Column("templates", JSONB, nullable=False, server_default="[]"),
    Column("report_sequence", BigInteger, nullable=False, server_default="0"),
    Column("epoch_seen", BigInteger, nullable=False, server_default="0"),
    # Until when the times that a leader gave way because of it count: each puts it forward by what one costs.
    Column("lead_moves_count_until", DateTime(timezone=True)),
    # Of this host's last changed assignment: what Poll compares. The epoch is of the leader that changed it.
    Column("assignment_epoch", BigInteger, nullable=False, server_default="0"),
    Column("assignment_revision", BigInteger, nullable=False, server_default="0"),
    _stamp("enrolled_at"),
    Column("reported_at", DateTime(timezone=True)),
    Column("lease_ends_at", DateTime(timezone=True)),
    # When the connection ended on which its agent held a poll; of no account once it has reported since.
    Column("hung_up_at", DateTime(timezone=True)),
    # Of the certificate that its agent last showed, where hosts are asked for one.
    Column("certificate_ends_at", DateTime(timezone=True)),
    # What its agent reports of it beside what it has.
    Column("labels", JSONB, nullable=False, server_default="{}"),
    # Which labels and templates its join token allows, any where it lists none; what it was refused, in sentences.
    Column("allowed", JSONB(none_as_null=True)),
    Column("refused", JSONB, nullable=False, server_default="[]"),
    Column("gpus", Integer, nullable=False, server_default="0"),
    Column("cpu_pressure", Double),
    Column("memory_pressure", Double),
    # Template -> when its workers were last seen to do nothing but end too early; Unix seconds of Postgres's clock.
    Column("failing", JSONB, nullable=False, server_default="{}"),
    # Kind -> errno of what keeps its agent from its work, as it last reported.
    Column("problems", JSONB, nullable=False, server_default="{}"),
    # Set by hand: serving, cordoned, draining; and since when, by whom and why.
    Column("state", Text, nullable=False, server_default="serving"),
    Column("cordoned_at", DateTime(timezone=True)),
    Column("cordoned_by", Text),
    Column("cordon_reason", Text),
    # Unix seconds from when on none of this holds any more.
    Column("cordoned_until_s", Double),
)

workers = _table(
    "workers",
    Column("worker_id", Text, primary_key=True),
    Column("host_id", Text, ForeignKey("hosts.host_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("pool", Text, nullable=False),
    Column("template", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("is_burst", Boolean, nullable=False, server_default="false"),
    Column("is_busy", Boolean),
    Column("restart_generation", BigInteger, nullable=False, server_default="0"),
    Column("started_at", DateTime(timezone=True), nullable=False),
    _stamp("reported_at"),
    Column("template_hash", Text, nullable=False, server_default=""),
    Column("memory_bytes", BigInteger),
    # When it came into its state, by what its agent says of how long that was ago, and when that was known here.
    Column("state_since", DateTime(timezone=True)),
    Column("state_reported_at", DateTime(timezone=True)),
    # Who says whether it is busy, and how old that was when its host reported last.
    Column("activity_source", Text),
    Column("activity_age_s", Double),
    Column("running_jobs", BigInteger),
    # Those of its running jobs that it named: id, queue, class, attempt and start of each.
    Column("running", JSONB, nullable=False, server_default="[]"),
    # What a worker has left that ended; why it takes no jobs; and whether a start that ended well has left it.
    Column("is_left_behind", Boolean, nullable=False, server_default="false"),
    Column("inability", Text),
    Column("goes_to_background", Boolean, nullable=False, server_default="false"),
    # Why starts of its kind fail, of a fixed list: what workers print stays on their hosts.
    Column("start_failure", Text),
    Column("moves_due_jobs", Boolean, nullable=False, server_default="false"),
)

kill_orders = _table(
    "kill_orders",
    # Workers that people want to be killed, until their hosts report them as gone.
    Column("worker_id", Text, ForeignKey("workers.worker_id", ondelete="CASCADE"), primary_key=True),
    Column("host_id", Text, nullable=False, index=True),
    Column("requested_by", Text, nullable=False),
    _stamp("requested_at"),
)

job_cuts = _table(
    "job_cuts",
    # Jobs that ends of workers have cut, or may have. The host may be forgotten since.
    Column("host_id", Text, primary_key=True),
    Column("cut_id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pool", Text, nullable=False),
    Column("template", Text, nullable=False),
    Column("worker_id", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("is_certain", Boolean, nullable=False),
    # Of the job, where the worker had named it.
    Column("job_id", Text),
    Column("queue", Text),
    Column("job_class", Text),
    Column("attempt", BigInteger),
    Column("job_started_at_s", Double),
    Column("cut_at", DateTime(timezone=True), nullable=False),
    _stamp("recorded_at", index=True),
)

template_start_ups = _table(
    "template_start_ups",
    # Learned: how long a worker of a template takes from spawn to ready on a host, exponentially weighted.
    Column("host_id", Text, ForeignKey("hosts.host_id", ondelete="CASCADE"), primary_key=True),
    Column("template", Text, primary_key=True),
    Column("start_up_s", Double, nullable=False),
    Column("starts", BigInteger, nullable=False),
    # Of the last starts, newest first: what 95 % of them took at most, and each.
    Column("start_up_p95_s", Double),
    Column("start_up_cpu_s", Double),
    Column("recent_s", ARRAY(Double), nullable=False, server_default="{}"),
    # What each would have taken with a core of its own, where that was measured.
    Column("recent_alone_s", ARRAY(Double), nullable=False, server_default="{}"),
)

template_exits = _table(
    "template_exits",
    # Learned: how long a worker without a job takes from the request to stop to the end of its process; as above.
    Column("host_id", Text, ForeignKey("hosts.host_id", ondelete="CASCADE"), primary_key=True),
    Column("template", Text, primary_key=True),
    Column("exit_s", Double, nullable=False),
    Column("exits", BigInteger, nullable=False),
    Column("recent_s", ARRAY(Double), nullable=False, server_default="{}"),
    Column("exit_cpu_s", Double),
    Column("recent_alone_s", ARRAY(Double), nullable=False, server_default="{}"),
)

forced_ends = _table(
    "forced_ends",
    # Workers that were ended by force at their drain deadline, since the host enrolled.
    Column("host_id", Text, ForeignKey("hosts.host_id", ondelete="CASCADE"), primary_key=True),
    Column("pool", Text, primary_key=True),
    Column("workers", BigInteger, nullable=False),
    _stamp("last_at"),
)

hosts_wanted = _table(
    "hosts_wanted",
    # What more or fewer hosts would be good for, one row a sort of host, since when.
    Column("key", Text, primary_key=True),
    Column("body", JSONB, nullable=False),
    _stamp("since_at"),
)

# --- what was decided ------------------------------------------------------------------------------------------------

pool_states = _table(
    "pool_states",
    # What deciding remembers, so that a restart or a new leader forgets nothing.
    Column("pool", Text, ForeignKey("profiles.pool", ondelete="CASCADE"), primary_key=True),
    Column("target_workers", Integer, nullable=False),
    Column("memory", JSONB, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    _stamp("decided_at"),
    # When a breach was last predicted, to a minute: one that goes on is no news to who was told of it.
    Column("breach_predicted_at_s", Double),
)

pool_behaviours = _table(
    "pool_behaviours",
    # What the leader has learned of a pool: lags, delays, what dispatch takes, how far predictions were off.
    Column("pool", Text, ForeignKey("profiles.pool", ondelete="CASCADE"), primary_key=True),
    Column("body", JSONB, nullable=False),
    # What that comes to, which is read more often: scaling.behaviour's value, and the errors of predictions.
    Column("summary", JSONB, nullable=False),
    _stamp("written_at"),
)

decisions = _table(
    "decisions",
    # Stored when they change and every few minutes; one partition a day, dropped whole.
    Column("decision_id", Uuid, nullable=False, server_default=func.gen_random_uuid()),
    Column("decided_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("pool", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("target_workers", Integer, nullable=False),
    Column("previous_workers", Integer),
    Column("binding", Text, nullable=False),
    Column("body", JSONB, nullable=False),
    PrimaryKeyConstraint("decided_at", "decision_id"),
    Index("ix_decisions_pool_decided_at", "pool", "decided_at"),
    # Most are as the one before: those that changed something are found without them, and so are those for a reason.
    Index(
        "ix_decisions_changed",
        "decided_at",
        "decision_id",
        postgresql_where=text("target_workers is distinct from previous_workers"),
    ),
    Index("ix_decisions_binding_decided_at_decision_id", "binding", "decided_at", "decision_id"),
    postgresql_partition_by="RANGE (decided_at)",
)

assignments = _table(
    "assignments",
    # No foreign key: the rows of a deleted profile stay until the leader has released them from their hosts.
    Column("pool", Text, primary_key=True),
    Column("host_id", Text, ForeignKey("hosts.host_id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("template", Text, nullable=False),
    Column("base_workers", Integer, nullable=False),
    Column("burst_workers", Integer, nullable=False, server_default="0"),
    Column("restart_generation", BigInteger, nullable=False, server_default="0"),
    Column("epoch", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    # Of a pinned pool: one worker ends before another starts in its place.
    Column("is_exclusive", Boolean, nullable=False, server_default="false"),
    # Something beside Headway keeps its workers from taking jobs: none is started, and none is replaced.
    Column("is_suspended", Boolean, nullable=False, server_default="false"),
    CheckConstraint("base_workers >= 0 and burst_workers >= 0", name="not_negative"),
)

released_assignments = _table(
    "released_assignments",
    # What a host no longer runs. A worker that drains reports its jobs until the last of them has ended.
    Column("pool", Text, primary_key=True),
    Column("host_id", Text, ForeignKey("hosts.host_id", ondelete="CASCADE"), primary_key=True, index=True),
    _stamp("released_at"),
)

# --- what is wrong ---------------------------------------------------------------------------------------------------

alerts = _table(
    "alerts",
    # An incident: opened once and closed once. What does not distinguish it is empty.
    Column("alert_id", Uuid, primary_key=True, server_default=func.gen_random_uuid()),
    Column("rule", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("pool", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("since_s", Double, nullable=False),
    Column("until_s", Double),
    Column("summary", Text, nullable=False),
    Column("action", Text, nullable=False),
    _stamp("opened_at"),
    Index("ix_alerts_opened_at_alert_id", "opened_at", "alert_id"),
    Index(
        "uq_alerts_rule_pool_host_kind",
        "rule",
        "pool",
        "host",
        "kind",
        unique=True,
        postgresql_where=text("until_s is null"),
    ),
)

silences = _table(
    "silences",
    Column("name", Text, primary_key=True),
    Column("matchers", JSONB, nullable=False),
    Column("until_s", Double, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_by", Text, nullable=False),
)

notifications = _table(
    "notifications",
    # An outbox: that an incident begins or ends, for one receiver. Written with the incident's own row.
    Column("alert_id", Uuid, ForeignKey("alerts.alert_id", ondelete="CASCADE"), primary_key=True),
    Column("phase", Text, primary_key=True),
    Column("receiver", Text, primary_key=True),
    Column("sequence", BigInteger, Identity(always=True), nullable=False),
    Column("pool", Text, nullable=False),
    Column("at_s", Double, nullable=False),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("next_at_s", Double, nullable=False, server_default="0"),
    Index("ix_notifications_waiting", "receiver", "pool", "sequence", postgresql_where=text("state = 'waiting'")),
)

pool_events = _table(
    "pool_events",
    # Another outbox: what happened to a pool, for one receiver, in the order of its numbers. The newest of each pool
    # stays, so that the next has the number after it.
    Column("receiver", Text, primary_key=True),
    Column("pool", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("event_id", Uuid, nullable=False, server_default=func.gen_random_uuid()),
    Column("event", Text, nullable=False),
    Column("at_s", Double, nullable=False),
    Column("from_workers", Integer, nullable=False),
    Column("to_workers", Integer, nullable=False),
    Column("why", Text, nullable=False),
    # No foreign key: decisions go with their day.
    Column("decision_id", Uuid),
    Column("state", Text, nullable=False, server_default="waiting"),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("next_at_s", Double, nullable=False, server_default="0"),
    Index("ix_pool_events_waiting", "receiver", "pool", "number", postgresql_where=text("state = 'waiting'")),
)

# --- who may call ----------------------------------------------------------------------------------------------------

credentials = _table(
    "credentials",
    # A token of a person or a program, a join token, or what a host shows with each call. Secrets are kept as SHA-256.
    Column("credential_id", Uuid, primary_key=True, server_default=func.gen_random_uuid()),
    Column("sha256", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("name", Text, nullable=False),
    # No foreign key: a host that was forgotten and is back shows what it has.
    Column("host_id", Text, index=True),
    # Of a join token: the only host that may join with it, and how many still may.
    Column("host_name", Text),
    Column("uses_left", Integer),
    # Of a host's credential: the join token that it was given for, and the secret of the agent that asked.
    Column("joined_by", Uuid),
    Column("agent_id", Text, nullable=False, server_default=""),
    # Of a join token, and of a credential of a host that it let in: what that may report of itself. A host is
    # forgotten.
    Column("allowed", JSONB(none_as_null=True)),
    # Of a session, a browser's sign-in: the SHA-256 of the token that was shown, or what proves HEADWAY_TOKEN.
    Column("session_of", Text),
    Column("created_by", Text, nullable=False),
    _stamp("created_at"),
    Column("used_at", DateTime(timezone=True)),
    Column("renew_at", DateTime(timezone=True)),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    # Of the last change that those must receive who know this row: the revision of credential_changes.
    Column("changed", BigInteger, nullable=False, server_default="0", index=True),
    CheckConstraint("(role = 'host') = (host_id is not null)", name="host"),
    CheckConstraint("(role = 'join') = (uses_left is not null)", name="join"),
    Index("uq_credentials_sha256", "sha256", unique=True),
    Index("uq_credentials_name", "name", unique=True, postgresql_where=text("role <> 'host' and revoked_at is null")),
)

credential_changes = _single_row(
    "credential_changes",
    # One row. Who changes what others know locks it until the end of its transaction: revisions come in their order.
    Column("revision", BigInteger, nullable=False, server_default="0"),
)
