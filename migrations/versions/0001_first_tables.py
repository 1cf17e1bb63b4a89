"""The first tables, their single rows, and a week of partitions for decisions.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.execute("create sequence bucket_revision")
    _create_audit_log()
    _create_cluster()
    _create_decisions()
    _create_event_batches()
    _create_event_files()
    _create_hosts()
    _create_leader_epoch()
    _create_leader_heartbeat()
    _create_pipeline_health()
    _create_profiles()
    _create_queue_buckets()
    _create_queue_samples()
    _create_worker_activities()
    _create_assignments()
    _create_pool_states()
    _create_profile_queues()
    _create_template_start_ups()
    _create_workers()
    for table in ("cluster", "leader_epoch", "leader_heartbeat"):
        op.execute(f"insert into {table} default values")
    _create_first_partitions()


def _create_first_partitions() -> None:
    """One partition a day in UTC, a week ahead; upkeep goes on from there."""
    op.execute(
        """
        do $$
        declare
            first_day date := (now() at time zone 'utc')::date;
            day date;
        begin
            for ahead in 0..7 loop
                day := first_day + ahead;
                execute format(
                    'create table decisions_%s partition of decisions for values from (%L) to (%L)',
                    to_char(day, 'YYYYMMDD'), day || ' 00:00:00+00', (day + 1) || ' 00:00:00+00'
                );
            end loop;
        end $$
        """
    )


def _create_audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("audit_id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("acted_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("before", JSONB(), nullable=True),
        sa.Column("after", JSONB(), nullable=True),
        sa.PrimaryKeyConstraint("audit_id", name=op.f("pk_audit_log")),
    )


def _create_cluster() -> None:
    op.create_table(
        "cluster",
        sa.Column("is_only", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("cluster_id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("event_log_location", sa.Text(), nullable=True),
        sa.Column("event_log_marker", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("is_only", name=op.f("ck_cluster_one_row")),
        sa.PrimaryKeyConstraint("is_only", name=op.f("pk_cluster")),
    )


def _create_decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("decision_id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("target_workers", sa.Integer(), nullable=False),
        sa.Column("previous_workers", sa.Integer(), nullable=True),
        sa.Column("binding", sa.Text(), nullable=False),
        sa.Column("body", JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("decided_at", "decision_id", name=op.f("pk_decisions")),
        postgresql_partition_by="RANGE (decided_at)",
    )
    op.create_index("ix_decisions_pool_decided_at", "decisions", ["pool", "decided_at"], unique=False)


def _create_event_batches() -> None:
    op.create_table(
        "event_batches",
        sa.Column("producer", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("file", sa.Text(), nullable=True),
        sa.Column("claimed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("producer", "sequence", name=op.f("pk_event_batches")),
    )
    op.create_index("ix_event_batches_claimed_at", "event_batches", ["claimed_at"], unique=False)


def _create_event_files() -> None:
    op.create_table(
        "event_files",
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("ingest", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("file", name=op.f("pk_event_files")),
    )


def _create_hosts() -> None:
    op.create_table(
        "hosts",
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), server_default="", nullable=False),
        sa.Column("credential_sha256", sa.Text(), nullable=True),
        sa.Column("agent_version", sa.Text(), server_default="", nullable=False),
        sa.Column("cpu_cores", sa.Double(), server_default="0", nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("templates", JSONB(), server_default="[]", nullable=False),
        sa.Column("report_sequence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("epoch_seen", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("assignment_epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("assignment_revision", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("enrolled_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("reported_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("host_id", name=op.f("pk_hosts")),
        sa.UniqueConstraint("name", name=op.f("uq_hosts_name")),
    )


def _create_leader_epoch() -> None:
    op.create_table(
        "leader_epoch",
        sa.Column("is_only", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("leader", sa.Text(), server_default="", nullable=False),
        sa.Column("backend_pid", sa.Integer(), nullable=True),
        sa.Column("taken_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("is_only", name=op.f("ck_leader_epoch_one_row")),
        sa.PrimaryKeyConstraint("is_only", name=op.f("pk_leader_epoch")),
    )


def _create_leader_heartbeat() -> None:
    op.create_table(
        "leader_heartbeat",
        sa.Column("is_only", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("renewed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("is_only", name=op.f("ck_leader_heartbeat_one_row")),
        sa.PrimaryKeyConstraint("is_only", name=op.f("pk_leader_heartbeat")),
    )


def _create_pipeline_health() -> None:
    op.create_table(
        "pipeline_health",
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("batch_s", sa.Double(), nullable=False),
        sa.Column("newest_received_at_s", sa.Double(), nullable=True),
        sa.Column("is_ready", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("pipeline", name=op.f("pk_pipeline_health")),
    )


def _create_profiles() -> None:
    op.create_table(
        "profiles",
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("body", JSONB(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("pool", name=op.f("pk_profiles")),
    )


def _create_queue_buckets() -> None:
    op.create_table(
        "queue_buckets",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("bucket_s", sa.Double(), nullable=False),
        sa.Column("arrived_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("started_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("finished_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failed_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("retried_jobs", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("service_sum_s", sa.Double(), server_default="0", nullable=False),
        sa.Column("pickup_max_s", sa.Double(), nullable=True),
        sa.Column("service_sketch", JSONB(), server_default="{}", nullable=False),
        sa.Column("pickup_sketch", JSONB(), server_default="{}", nullable=False),
        sa.Column("sampled_at_s", sa.Double(), nullable=True),
        sa.Column("waiting_jobs", sa.BigInteger(), nullable=True),
        sa.Column("in_flight_jobs", sa.BigInteger(), nullable=True),
        sa.Column("delayed_jobs", sa.BigInteger(), nullable=True),
        sa.Column("oldest_age_s", sa.Double(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("queue", "bucket_s", name=op.f("pk_queue_buckets")),
    )
    op.create_index("ix_queue_buckets_bucket_s", "queue_buckets", ["bucket_s"], unique=False)
    op.create_index("ix_queue_buckets_revision", "queue_buckets", ["revision"], unique=False)


def _create_queue_samples() -> None:
    op.create_table(
        "queue_samples",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("sampled_at_s", sa.Double(), nullable=False),
        sa.Column("waiting_jobs", sa.BigInteger(), nullable=False),
        sa.Column("in_flight_jobs", sa.BigInteger(), nullable=True),
        sa.Column("delayed_jobs", sa.BigInteger(), nullable=True),
        sa.Column("oldest_age_s", sa.Double(), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("queue", name=op.f("pk_queue_samples")),
    )


def _create_worker_activities() -> None:
    op.create_table(
        "worker_activities",
        sa.Column("host_name", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("is_busy", sa.Boolean(), nullable=False),
        sa.Column("busy_since_s", sa.Double(), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("host_name", "pid", name=op.f("pk_worker_activities")),
    )


def _create_assignments() -> None:
    op.create_table(
        "assignments",
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("base_workers", sa.Integer(), nullable=False),
        sa.Column("burst_workers", sa.Integer(), server_default="0", nullable=False),
        sa.Column("restart_generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("base_workers >= 0 and burst_workers >= 0", name=op.f("ck_assignments_not_negative")),
        sa.ForeignKeyConstraint(
            ["host_id"], ["hosts.host_id"], name=op.f("fk_assignments_host_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("pool", "host_id", name=op.f("pk_assignments")),
    )
    op.create_index("ix_assignments_host_id", "assignments", ["host_id"], unique=False)


def _create_pool_states() -> None:
    op.create_table(
        "pool_states",
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("target_workers", sa.Integer(), nullable=False),
        sa.Column("memory", JSONB(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["pool"], ["profiles.pool"], name=op.f("fk_pool_states_pool"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("pool", name=op.f("pk_pool_states")),
    )


def _create_profile_queues() -> None:
    op.create_table(
        "profile_queues",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["pool"], ["profiles.pool"], name=op.f("fk_profile_queues_pool"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("queue", name=op.f("pk_profile_queues")),
    )
    op.create_index(op.f("ix_profile_queues_pool"), "profile_queues", ["pool"], unique=False)


def _create_template_start_ups() -> None:
    op.create_table(
        "template_start_ups",
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("start_up_s", sa.Double(), nullable=False),
        sa.Column("starts", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["host_id"], ["hosts.host_id"], name=op.f("fk_template_start_ups_host_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("host_id", "template", name=op.f("pk_template_start_ups")),
    )


def _create_workers() -> None:
    op.create_table(
        "workers",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Text(), nullable=False),
        sa.Column("pool", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("is_burst", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("is_busy", sa.Boolean(), nullable=True),
        sa.Column("restart_generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reported_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_workers_host_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("worker_id", name=op.f("pk_workers")),
    )
    op.create_index(op.f("ix_workers_host_id"), "workers", ["host_id"], unique=False)
