"""The tables as they are first made, their single rows, and a week of partitions for decisions.

Revision ID: 0043
"""

from alembic import op

revision = "0043"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
create sequence bucket_revision;

create table alerts (
    alert_id uuid not null default gen_random_uuid(),
    rule text not null,
    severity text not null,
    pool text not null,
    host text not null,
    kind text not null,
    since_s double precision not null,
    until_s double precision,
    summary text not null,
    action text not null,
    opened_at timestamptz not null default now(),
    constraint pk_alerts primary key (alert_id)
);
create index ix_alerts_opened_at_alert_id on alerts (opened_at, alert_id);
create unique index uq_alerts_rule_pool_host_kind on alerts (rule, pool, host, kind) where until_s is null;

create table audit_log (
    audit_id uuid not null default gen_random_uuid(),
    acted_at timestamptz not null default now(),
    actor text not null,
    action text not null,
    subject text not null,
    before jsonb,
    after jsonb,
    address text,
    constraint pk_audit_log primary key (audit_id)
);
create index ix_audit_log_acted_at on audit_log (acted_at, audit_id);

create table cluster (
    is_only boolean not null default true,
    cluster_id uuid not null default gen_random_uuid(),
    event_log_location text,
    event_log_marker uuid,
    created_at timestamptz not null default now(),
    constraint pk_cluster primary key (is_only),
    constraint ck_cluster_one_row check (is_only)
);

create table collectors (
    connection text not null,
    producer text not null,
    began_at timestamptz not null default now(),
    seen_at timestamptz not null default now(),
    constraint pk_collectors primary key (connection, producer)
);

create table credential_changes (
    is_only boolean not null default true,
    revision bigint not null default '0',
    constraint pk_credential_changes primary key (is_only),
    constraint ck_credential_changes_one_row check (is_only)
);

create table credentials (
    credential_id uuid not null default gen_random_uuid(),
    sha256 text not null,
    role text not null,
    name text not null,
    host_id text,
    host_name text,
    uses_left integer,
    joined_by uuid,
    agent_id text not null default '',
    created_by text not null,
    created_at timestamptz not null default now(),
    used_at timestamptz,
    renew_at timestamptz,
    expires_at timestamptz,
    revoked_at timestamptz,
    changed bigint not null default '0',
    allowed jsonb,
    session_of text,
    constraint pk_credentials primary key (credential_id),
    constraint ck_credentials_host check ((role = 'host') = (host_id is not null)),
    constraint ck_credentials_join check ((role = 'join') = (uses_left is not null))
);
create index ix_credentials_changed on credentials (changed);
create index ix_credentials_host_id on credentials (host_id);
create unique index uq_credentials_name on credentials (name) where (role <> 'host') and (revoked_at is null);
create unique index uq_credentials_sha256 on credentials (sha256);

create table decisions (
    decision_id uuid not null default gen_random_uuid(),
    decided_at timestamptz not null default now(),
    pool text not null,
    epoch bigint not null,
    target_workers integer not null,
    previous_workers integer,
    binding text not null,
    body jsonb not null,
    constraint pk_decisions primary key (decided_at, decision_id)
) partition by range (decided_at);
create index ix_decisions_binding_decided_at_decision_id on decisions (binding, decided_at, decision_id);
create index ix_decisions_changed on decisions (decided_at, decision_id)
    where target_workers is distinct from previous_workers;
create index ix_decisions_pool_decided_at on decisions (pool, decided_at);

create table event_batches (
    producer text not null,
    sequence bigint not null,
    file text,
    claimed_at timestamptz not null default now(),
    constraint pk_event_batches primary key (producer, sequence)
);
create index ix_event_batches_claimed_at on event_batches (claimed_at);

create table event_files (
    file text not null,
    ingest text not null,
    rows bigint not null,
    bytes bigint not null,
    recorded_at timestamptz not null default now(),
    constraint pk_event_files primary key (file)
);
create index ix_event_files_recorded_at on event_files (recorded_at);

create table event_sources (
    queue text not null,
    source text not null,
    arrivals_at timestamptz,
    starts_at timestamptz,
    ends_at timestamptz,
    constraint pk_event_sources primary key (queue, source)
);

create table hosts (
    host_id text not null,
    name text not null,
    boot_id text not null default '',
    credential_sha256 text,
    agent_version text not null default '',
    cpu_cores double precision not null default '0',
    memory_bytes bigint not null default '0',
    templates jsonb not null default '[]',
    report_sequence bigint not null default '0',
    epoch_seen bigint not null default '0',
    assignment_epoch bigint not null default '0',
    assignment_revision bigint not null default '0',
    enrolled_at timestamptz not null default now(),
    reported_at timestamptz,
    lease_ends_at timestamptz,
    labels jsonb not null default '{}',
    gpus integer not null default 0,
    cpu_pressure double precision,
    memory_pressure double precision,
    failing jsonb not null default '{}',
    state text not null default 'serving',
    cordoned_at timestamptz,
    cordoned_by text,
    cordon_reason text,
    lead_moves_count_until timestamptz,
    allowed jsonb,
    refused jsonb not null default '[]',
    hung_up_at timestamptz,
    certificate_ends_at timestamptz,
    problems jsonb not null default '{}',
    cordoned_until_s double precision,
    constraint pk_hosts primary key (host_id),
    constraint uq_hosts_name unique (name)
);

create table hosts_wanted (
    key text not null,
    body jsonb not null,
    since_at timestamptz not null default now(),
    constraint pk_hosts_wanted primary key (key)
);

create table idempotency_keys (
    identity text not null,
    key_sha256 text not null,
    request_sha256 text not null,
    claimed_at timestamptz not null default now(),
    status integer,
    headers jsonb,
    body bytea,
    constraint pk_idempotency_keys primary key (identity, key_sha256)
);

create table job_reports (
    number bigint generated always as identity,
    connection text not null,
    source text not null,
    ingest text not null,
    keys bytea not null,
    recorded_at timestamptz not null default now(),
    constraint pk_job_reports primary key (number)
);
create index ix_job_reports_connection_number on job_reports (connection, number);
create index ix_job_reports_recorded_at on job_reports (recorded_at);

create table leader_epoch (
    is_only boolean not null default true,
    epoch bigint not null default '0',
    leader text not null default '',
    backend_pid integer,
    taken_at timestamptz not null default now(),
    hosts_heard_from timestamptz not null default '-infinity',
    constraint pk_leader_epoch primary key (is_only),
    constraint ck_leader_epoch_one_row check (is_only)
);

create table leader_heartbeat (
    is_only boolean not null default true,
    epoch bigint not null default '0',
    renewed_at timestamptz not null default now(),
    constraint pk_leader_heartbeat primary key (is_only),
    constraint ck_leader_heartbeat_one_row check (is_only)
);

create table listed_workers (
    queue text not null,
    from_s double precision not null,
    until_s double precision not null,
    workers bigint not null,
    constraint pk_listed_workers primary key (queue, from_s)
);
create index ix_listed_workers_until_s on listed_workers (until_s);

create table notifications (
    alert_id uuid not null,
    phase text not null,
    receiver text not null,
    sequence bigint generated always as identity,
    pool text not null,
    at_s double precision not null,
    state text not null default 'waiting',
    attempts integer not null default 0,
    next_at_s double precision not null default '0',
    constraint pk_notifications primary key (alert_id, phase, receiver),
    constraint fk_notifications_alert_id foreign key (alert_id) references alerts (alert_id) on delete cascade
);
create index ix_notifications_waiting on notifications (receiver, pool, sequence) where state = 'waiting';

create table pipeline_health (
    pipeline text not null,
    batch_id bigint not null,
    rows bigint not null,
    batch_s double precision not null,
    newest_received_at_s double precision,
    is_ready boolean not null default false,
    written_at timestamptz not null default now(),
    stage text not null default 'starting',
    rows_lag_s double precision,
    beat_at timestamptz,
    lacks text,
    constraint pk_pipeline_health primary key (pipeline)
);

create table producers (
    producer text not null,
    sent_by text not null,
    owner_sha256 text,
    seen_at timestamptz not null default now(),
    constraint pk_producers primary key (producer)
);

create table profiles (
    pool text not null,
    version bigint not null default '1',
    body jsonb not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    override jsonb,
    pause text,
    restart_generation bigint not null default '0',
    pause_reason text,
    pause_until_s double precision,
    constraint pk_profiles primary key (pool)
);

create table queue_buckets (
    queue text not null,
    bucket_s double precision not null,
    arrived_jobs bigint not null default '0',
    started_jobs bigint not null default '0',
    finished_jobs bigint not null default '0',
    failed_jobs bigint not null default '0',
    retried_jobs bigint not null default '0',
    service_sum_s double precision not null default '0',
    pickup_max_s double precision,
    service_sketch jsonb not null default '{}',
    pickup_sketch jsonb not null default '{}',
    sampled_at_s double precision,
    waiting_jobs bigint,
    in_flight_jobs bigint,
    delayed_jobs bigint,
    oldest_age_s double precision,
    revision bigint not null,
    written_at timestamptz not null default now(),
    constraint pk_queue_buckets primary key (queue, bucket_s)
);
create index ix_queue_buckets_bucket_s on queue_buckets (bucket_s);
create index ix_queue_buckets_revision on queue_buckets (revision);

create table queue_counts (
    producer text not null,
    queue text not null,
    sequence bigint not null,
    epoch text not null,
    received_at_s double precision not null,
    arrived_jobs bigint,
    started_jobs bigint,
    finished_jobs bigint,
    failed_jobs bigint,
    constraint pk_queue_counts primary key (producer, queue)
);

create table queue_samples (
    queue text not null,
    sampled_at_s double precision not null,
    waiting_jobs bigint not null,
    in_flight_jobs bigint,
    delayed_jobs bigint,
    oldest_age_s double precision,
    received_at timestamptz not null default now(),
    reserved_jobs bigint,
    oldest_age_max_s double precision,
    reports_arrivals boolean,
    reports_starts boolean,
    reports_ends boolean,
    poll_interval_s double precision,
    listed_workers bigint,
    listed_since_s double precision,
    constraint pk_queue_samples primary key (queue)
);

create table queue_seasons (
    queue text not null,
    version integer not null,
    time_zone text not null,
    body jsonb not null,
    source text not null,
    from_s double precision not null,
    until_s double precision not null,
    trained_at timestamptz not null default now(),
    constraint pk_queue_seasons primary key (queue)
);

create table queue_totals (
    queue text not null,
    arrived_jobs bigint not null,
    started_jobs bigint not null,
    finished_jobs bigint not null,
    failed_jobs bigint not null,
    service_sum_s double precision not null,
    service_sketch jsonb not null,
    pickup_sketch jsonb not null,
    constraint pk_queue_totals primary key (queue)
);

create table queues (
    queue text not null,
    sent_by text not null default '',
    seen_at timestamptz not null default now(),
    constraint pk_queues primary key (queue)
);

create table rollup_hours (
    queue text not null,
    job_class text not null default '',
    bucket_s double precision not null,
    arrived_jobs bigint not null default '0',
    started_jobs bigint not null default '0',
    finished_jobs bigint not null default '0',
    failed_jobs bigint not null default '0',
    retried_jobs bigint not null default '0',
    service_sum_s double precision not null default '0',
    pickup_max_s double precision,
    service_sketch jsonb not null default '{}',
    pickup_sketch jsonb not null default '{}',
    sampled_at_s double precision,
    waiting_jobs bigint,
    in_flight_jobs bigint,
    delayed_jobs bigint,
    oldest_age_s double precision,
    constraint pk_rollup_hours primary key (queue, job_class, bucket_s)
);
create index ix_rollup_hours_bucket_s on rollup_hours (bucket_s);

create table rollup_minutes (
    queue text not null,
    job_class text not null default '',
    bucket_s double precision not null,
    arrived_jobs bigint not null default '0',
    started_jobs bigint not null default '0',
    finished_jobs bigint not null default '0',
    failed_jobs bigint not null default '0',
    retried_jobs bigint not null default '0',
    service_sum_s double precision not null default '0',
    pickup_max_s double precision,
    service_sketch jsonb not null default '{}',
    pickup_sketch jsonb not null default '{}',
    sampled_at_s double precision,
    waiting_jobs bigint,
    in_flight_jobs bigint,
    delayed_jobs bigint,
    oldest_age_s double precision,
    constraint pk_rollup_minutes primary key (queue, job_class, bucket_s)
);
create index ix_rollup_minutes_bucket_s on rollup_minutes (bucket_s);

create table rollup_progress (
    is_only boolean not null default true,
    revision bigint not null default '0',
    minutes_until_s double precision not null default '0',
    hours_until_s double precision not null default '0',
    totals_until_s double precision not null default '0',
    constraint pk_rollup_progress primary key (is_only),
    constraint ck_rollup_progress_one_row check (is_only)
);

create table silences (
    name text not null,
    matchers jsonb not null,
    until_s double precision not null,
    reason text not null,
    created_by text not null,
    constraint pk_silences primary key (name)
);

create table template_exits (
    host_id text not null,
    template text not null,
    exit_s double precision not null,
    exits bigint not null,
    recent_s double precision[] not null default '{}',
    recent_alone_s double precision[] not null default '{}',
    exit_cpu_s double precision,
    constraint pk_template_exits primary key (host_id, template),
    constraint fk_template_exits_host_id foreign key (host_id) references hosts (host_id) on delete cascade
);

create table template_start_ups (
    host_id text not null,
    template text not null,
    start_up_s double precision not null,
    starts bigint not null,
    start_up_p95_s double precision,
    start_up_cpu_s double precision,
    recent_s double precision[] not null default '{}',
    recent_alone_s double precision[] not null default '{}',
    constraint pk_template_start_ups primary key (host_id, template),
    constraint fk_template_start_ups_host_id foreign key (host_id) references hosts (host_id) on delete cascade
);

create table worker_activities (
    host_name text not null,
    pid bigint not null,
    is_busy boolean not null,
    busy_since_s double precision,
    seen_at timestamptz not null default now(),
    ended_jobs bigint,
    running_jobs bigint,
    constraint pk_worker_activities primary key (host_name, pid)
);

create table workers (
    worker_id text not null,
    host_id text not null,
    pool text not null,
    template text not null,
    pid bigint not null,
    state text not null,
    is_burst boolean not null default false,
    is_busy boolean,
    restart_generation bigint not null default '0',
    started_at timestamptz not null,
    reported_at timestamptz not null default now(),
    template_hash text not null default '',
    memory_bytes bigint,
    state_since timestamptz,
    state_reported_at timestamptz,
    constraint pk_workers primary key (worker_id),
    constraint fk_workers_host_id foreign key (host_id) references hosts (host_id) on delete cascade
);
create index ix_workers_host_id on workers (host_id);

create table assignments (
    pool text not null,
    host_id text not null,
    template text not null,
    base_workers integer not null,
    burst_workers integer not null default 0,
    restart_generation bigint not null default '0',
    epoch bigint not null,
    revision bigint not null,
    is_exclusive boolean not null default false,
    constraint pk_assignments primary key (pool, host_id),
    constraint fk_assignments_host_id foreign key (host_id) references hosts (host_id) on delete cascade,
    constraint ck_assignments_not_negative check (base_workers >= 0 and burst_workers >= 0)
);
create index ix_assignments_host_id on assignments (host_id);

create table forced_ends (
    host_id text not null,
    pool text not null,
    workers bigint not null,
    last_at timestamptz not null default now(),
    constraint pk_forced_ends primary key (host_id, pool),
    constraint fk_forced_ends_host_id foreign key (host_id) references hosts (host_id) on delete cascade
);

create table pool_attainment (
    pool text not null,
    from_s double precision not null,
    jobs bigint not null,
    late_jobs bigint not null,
    constraint pk_pool_attainment primary key (pool, from_s),
    constraint fk_pool_attainment_pool foreign key (pool) references profiles (pool) on delete cascade
);
create index ix_pool_attainment_from_s on pool_attainment (from_s);

create table pool_behaviours (
    pool text not null,
    body jsonb not null,
    summary jsonb not null,
    written_at timestamptz not null default now(),
    constraint pk_pool_behaviours primary key (pool),
    constraint fk_pool_behaviours_pool foreign key (pool) references profiles (pool) on delete cascade
);

create table pool_states (
    pool text not null,
    target_workers integer not null,
    memory jsonb not null,
    epoch bigint not null,
    decided_at timestamptz not null default now(),
    constraint pk_pool_states primary key (pool),
    constraint fk_pool_states_pool foreign key (pool) references profiles (pool) on delete cascade
);

create table profile_queues (
    queue text not null,
    pool text not null,
    rank integer not null,
    constraint pk_profile_queues primary key (queue),
    constraint fk_profile_queues_pool foreign key (pool) references profiles (pool) on delete cascade
);
create index ix_profile_queues_pool on profile_queues (pool);
"""
SINGLE_ROWS = ("cluster", "credential_changes", "leader_epoch", "leader_heartbeat", "rollup_progress")
PARTITIONS = """
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
# One a day in UTC, a week ahead; upkeep goes on from there.


def upgrade() -> None:
    op.execute("set local lock_timeout = '5s'")
    op.execute(TABLES)
    for table in SINGLE_ROWS:
        op.execute(f"insert into {table} default values")
    op.execute(PARTITIONS)
