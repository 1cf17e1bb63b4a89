from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKER_STATE_UNSPECIFIED: _ClassVar[WorkerState]
    WORKER_STATE_STARTING: _ClassVar[WorkerState]
    WORKER_STATE_RUNNING: _ClassVar[WorkerState]
    WORKER_STATE_DRAINING: _ClassVar[WorkerState]
    WORKER_STATE_BACKING_OFF: _ClassVar[WorkerState]
    WORKER_STATE_GONE: _ClassVar[WorkerState]

class HostProblemKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOST_PROBLEM_KIND_UNSPECIFIED: _ClassVar[HostProblemKind]
    HOST_PROBLEM_KIND_STATE_FOLDER: _ClassVar[HostProblemKind]
    HOST_PROBLEM_KIND_LOG_FOLDER: _ClassVar[HostProblemKind]
    HOST_PROBLEM_KIND_HOST_FILE: _ClassVar[HostProblemKind]
WORKER_STATE_UNSPECIFIED: WorkerState
WORKER_STATE_STARTING: WorkerState
WORKER_STATE_RUNNING: WorkerState
WORKER_STATE_DRAINING: WorkerState
WORKER_STATE_BACKING_OFF: WorkerState
WORKER_STATE_GONE: WorkerState
HOST_PROBLEM_KIND_UNSPECIFIED: HostProblemKind
HOST_PROBLEM_KIND_STATE_FOLDER: HostProblemKind
HOST_PROBLEM_KIND_LOG_FOLDER: HostProblemKind
HOST_PROBLEM_KIND_HOST_FILE: HostProblemKind

class EnrolRequest(_message.Message):
    __slots__ = ("host_name", "join_token", "boot_id", "agent_version", "host_id", "agent_id")
    HOST_NAME_FIELD_NUMBER: _ClassVar[int]
    JOIN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    host_name: str
    join_token: str
    boot_id: str
    agent_version: str
    host_id: str
    agent_id: str
    def __init__(self, host_name: _Optional[str] = ..., join_token: _Optional[str] = ..., boot_id: _Optional[str] = ..., agent_version: _Optional[str] = ..., host_id: _Optional[str] = ..., agent_id: _Optional[str] = ...) -> None: ...

class EnrolResponse(_message.Message):
    __slots__ = ("cluster_id", "host_id", "credential")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    host_id: str
    credential: str
    def __init__(self, cluster_id: _Optional[str] = ..., host_id: _Optional[str] = ..., credential: _Optional[str] = ...) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ("cluster_id", "host_id", "boot_id", "sequence", "epoch_seen", "capacity", "templates", "workers", "start_ups", "host_name", "labels", "exits", "problems", "cuts")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_SEEN_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    START_UPS_FIELD_NUMBER: _ClassVar[int]
    HOST_NAME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    EXITS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    host_id: str
    boot_id: str
    sequence: int
    epoch_seen: int
    capacity: HostCapacity
    templates: _containers.RepeatedCompositeFieldContainer[Template]
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    start_ups: _containers.RepeatedCompositeFieldContainer[StartUp]
    host_name: str
    labels: _containers.ScalarMap[str, str]
    exits: _containers.RepeatedCompositeFieldContainer[Exit]
    problems: _containers.RepeatedCompositeFieldContainer[HostProblem]
    cuts: _containers.RepeatedCompositeFieldContainer[CutJob]
    def __init__(self, cluster_id: _Optional[str] = ..., host_id: _Optional[str] = ..., boot_id: _Optional[str] = ..., sequence: _Optional[int] = ..., epoch_seen: _Optional[int] = ..., capacity: _Optional[_Union[HostCapacity, _Mapping]] = ..., templates: _Optional[_Iterable[_Union[Template, _Mapping]]] = ..., workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ..., start_ups: _Optional[_Iterable[_Union[StartUp, _Mapping]]] = ..., host_name: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., exits: _Optional[_Iterable[_Union[Exit, _Mapping]]] = ..., problems: _Optional[_Iterable[_Union[HostProblem, _Mapping]]] = ..., cuts: _Optional[_Iterable[_Union[CutJob, _Mapping]]] = ...) -> None: ...

class CutJob(_message.Message):
    __slots__ = ("cut_id", "worker_id", "pool", "template", "cause", "age_s", "is_certain", "job")
    CUT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    IS_CERTAIN_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    cut_id: str
    worker_id: str
    pool: str
    template: str
    cause: str
    age_s: float
    is_certain: bool
    job: RunningJob
    def __init__(self, cut_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., pool: _Optional[str] = ..., template: _Optional[str] = ..., cause: _Optional[str] = ..., age_s: _Optional[float] = ..., is_certain: bool = ..., job: _Optional[_Union[RunningJob, _Mapping]] = ...) -> None: ...

class ReportResponse(_message.Message):
    __slots__ = ("cluster_id", "lease_s", "credential")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    lease_s: float
    credential: str
    def __init__(self, cluster_id: _Optional[str] = ..., lease_s: _Optional[float] = ..., credential: _Optional[str] = ...) -> None: ...

class PollRequest(_message.Message):
    __slots__ = ("cluster_id", "host_id", "epoch", "revision", "max_wait_s")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_S_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    host_id: str
    epoch: int
    revision: int
    max_wait_s: float
    def __init__(self, cluster_id: _Optional[str] = ..., host_id: _Optional[str] = ..., epoch: _Optional[int] = ..., revision: _Optional[int] = ..., max_wait_s: _Optional[float] = ...) -> None: ...

class PollResponse(_message.Message):
    __slots__ = ("cluster_id", "epoch", "revision", "assignments", "hints", "kills", "pools")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    HINTS_FIELD_NUMBER: _ClassVar[int]
    KILLS_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    cluster_id: str
    epoch: int
    revision: int
    assignments: _containers.RepeatedCompositeFieldContainer[Assignment]
    hints: _containers.RepeatedCompositeFieldContainer[WorkerHint]
    kills: _containers.RepeatedCompositeFieldContainer[KillOrder]
    pools: _containers.RepeatedCompositeFieldContainer[PoolQueues]
    def __init__(self, cluster_id: _Optional[str] = ..., epoch: _Optional[int] = ..., revision: _Optional[int] = ..., assignments: _Optional[_Iterable[_Union[Assignment, _Mapping]]] = ..., hints: _Optional[_Iterable[_Union[WorkerHint, _Mapping]]] = ..., kills: _Optional[_Iterable[_Union[KillOrder, _Mapping]]] = ..., pools: _Optional[_Iterable[_Union[PoolQueues, _Mapping]]] = ...) -> None: ...

class KillOrder(_message.Message):
    __slots__ = ("worker_id", "requested_by")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    requested_by: str
    def __init__(self, worker_id: _Optional[str] = ..., requested_by: _Optional[str] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("pool", "template", "base_workers", "burst_workers", "restart_generation", "is_exclusive", "is_suspended")
    POOL_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    BASE_WORKERS_FIELD_NUMBER: _ClassVar[int]
    BURST_WORKERS_FIELD_NUMBER: _ClassVar[int]
    RESTART_GENERATION_FIELD_NUMBER: _ClassVar[int]
    IS_EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    IS_SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    pool: str
    template: str
    base_workers: int
    burst_workers: int
    restart_generation: int
    is_exclusive: bool
    is_suspended: bool
    def __init__(self, pool: _Optional[str] = ..., template: _Optional[str] = ..., base_workers: _Optional[int] = ..., burst_workers: _Optional[int] = ..., restart_generation: _Optional[int] = ..., is_exclusive: bool = ..., is_suspended: bool = ...) -> None: ...

class PoolQueues(_message.Message):
    __slots__ = ("pool", "queues")
    POOL_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    pool: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pool: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ...) -> None: ...

class WorkerHint(_message.Message):
    __slots__ = ("pid", "is_busy", "since_age_s", "age_s", "ended_jobs")
    PID_FIELD_NUMBER: _ClassVar[int]
    IS_BUSY_FIELD_NUMBER: _ClassVar[int]
    SINCE_AGE_S_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    ENDED_JOBS_FIELD_NUMBER: _ClassVar[int]
    pid: int
    is_busy: bool
    since_age_s: float
    age_s: float
    ended_jobs: int
    def __init__(self, pid: _Optional[int] = ..., is_busy: bool = ..., since_age_s: _Optional[float] = ..., age_s: _Optional[float] = ..., ended_jobs: _Optional[int] = ...) -> None: ...

class HostCapacity(_message.Message):
    __slots__ = ("cpu_cores", "memory_bytes", "gpus", "cpu_pressure", "memory_pressure")
    CPU_CORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    CPU_PRESSURE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PRESSURE_FIELD_NUMBER: _ClassVar[int]
    cpu_cores: float
    memory_bytes: int
    gpus: int
    cpu_pressure: float
    memory_pressure: float
    def __init__(self, cpu_cores: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., gpus: _Optional[int] = ..., cpu_pressure: _Optional[float] = ..., memory_pressure: _Optional[float] = ...) -> None: ...

class Template(_message.Message):
    __slots__ = ("name", "content_hash", "slots", "cpu_cores", "memory_bytes", "gpus", "labels", "isolation_drain_after_s", "drain_timeout_s", "job_limit_s", "job_limit", "leaves_due_jobs", "queue_order", "strict_queues", "written_slots", "queues_allowed")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    CPU_CORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_DRAIN_AFTER_S_FIELD_NUMBER: _ClassVar[int]
    DRAIN_TIMEOUT_S_FIELD_NUMBER: _ClassVar[int]
    JOB_LIMIT_S_FIELD_NUMBER: _ClassVar[int]
    JOB_LIMIT_FIELD_NUMBER: _ClassVar[int]
    LEAVES_DUE_JOBS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ORDER_FIELD_NUMBER: _ClassVar[int]
    STRICT_QUEUES_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_SLOTS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    name: str
    content_hash: str
    slots: int
    cpu_cores: float
    memory_bytes: int
    gpus: int
    labels: _containers.ScalarMap[str, str]
    isolation_drain_after_s: float
    drain_timeout_s: float
    job_limit_s: float
    job_limit: str
    leaves_due_jobs: bool
    queue_order: str
    strict_queues: _containers.RepeatedScalarFieldContainer[str]
    written_slots: int
    queues_allowed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., content_hash: _Optional[str] = ..., slots: _Optional[int] = ..., cpu_cores: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., gpus: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., isolation_drain_after_s: _Optional[float] = ..., drain_timeout_s: _Optional[float] = ..., job_limit_s: _Optional[float] = ..., job_limit: _Optional[str] = ..., leaves_due_jobs: bool = ..., queue_order: _Optional[str] = ..., strict_queues: _Optional[_Iterable[str]] = ..., written_slots: _Optional[int] = ..., queues_allowed: _Optional[_Iterable[str]] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ("worker_id", "pool", "template", "pid", "state", "age_s", "is_burst", "is_busy", "restart_generation", "exit_code", "template_hash", "memory_bytes", "is_forced", "state_age_s", "is_unrecorded", "activity_source", "activity_age_s", "running_jobs", "running", "is_left_behind", "inability", "goes_to_background", "start_failure", "moves_due_jobs")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    IS_BURST_FIELD_NUMBER: _ClassVar[int]
    IS_BUSY_FIELD_NUMBER: _ClassVar[int]
    RESTART_GENERATION_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_HASH_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    IS_FORCED_FIELD_NUMBER: _ClassVar[int]
    STATE_AGE_S_FIELD_NUMBER: _ClassVar[int]
    IS_UNRECORDED_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_SOURCE_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_AGE_S_FIELD_NUMBER: _ClassVar[int]
    RUNNING_JOBS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    IS_LEFT_BEHIND_FIELD_NUMBER: _ClassVar[int]
    INABILITY_FIELD_NUMBER: _ClassVar[int]
    GOES_TO_BACKGROUND_FIELD_NUMBER: _ClassVar[int]
    START_FAILURE_FIELD_NUMBER: _ClassVar[int]
    MOVES_DUE_JOBS_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    pool: str
    template: str
    pid: int
    state: WorkerState
    age_s: float
    is_burst: bool
    is_busy: bool
    restart_generation: int
    exit_code: int
    template_hash: str
    memory_bytes: int
    is_forced: bool
    state_age_s: float
    is_unrecorded: bool
    activity_source: str
    activity_age_s: float
    running_jobs: int
    running: _containers.RepeatedCompositeFieldContainer[RunningJob]
    is_left_behind: bool
    inability: str
    goes_to_background: bool
    start_failure: str
    moves_due_jobs: bool
    def __init__(self, worker_id: _Optional[str] = ..., pool: _Optional[str] = ..., template: _Optional[str] = ..., pid: _Optional[int] = ..., state: _Optional[_Union[WorkerState, str]] = ..., age_s: _Optional[float] = ..., is_burst: bool = ..., is_busy: bool = ..., restart_generation: _Optional[int] = ..., exit_code: _Optional[int] = ..., template_hash: _Optional[str] = ..., memory_bytes: _Optional[int] = ..., is_forced: bool = ..., state_age_s: _Optional[float] = ..., is_unrecorded: bool = ..., activity_source: _Optional[str] = ..., activity_age_s: _Optional[float] = ..., running_jobs: _Optional[int] = ..., running: _Optional[_Iterable[_Union[RunningJob, _Mapping]]] = ..., is_left_behind: bool = ..., inability: _Optional[str] = ..., goes_to_background: bool = ..., start_failure: _Optional[str] = ..., moves_due_jobs: bool = ...) -> None: ...

class RunningJob(_message.Message):
    __slots__ = ("job_id", "queue", "job_class", "attempt", "started_at_s")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    JOB_CLASS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_S_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    queue: str
    job_class: str
    attempt: int
    started_at_s: float
    def __init__(self, job_id: _Optional[str] = ..., queue: _Optional[str] = ..., job_class: _Optional[str] = ..., attempt: _Optional[int] = ..., started_at_s: _Optional[float] = ...) -> None: ...

class HostProblem(_message.Message):
    __slots__ = ("kind", "error_number")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ERROR_NUMBER_FIELD_NUMBER: _ClassVar[int]
    kind: HostProblemKind
    error_number: int
    def __init__(self, kind: _Optional[_Union[HostProblemKind, str]] = ..., error_number: _Optional[int] = ...) -> None: ...

class StartUp(_message.Message):
    __slots__ = ("template", "start_up_s", "cpu_s", "waited_s")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    START_UP_S_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    WAITED_S_FIELD_NUMBER: _ClassVar[int]
    template: str
    start_up_s: float
    cpu_s: float
    waited_s: float
    def __init__(self, template: _Optional[str] = ..., start_up_s: _Optional[float] = ..., cpu_s: _Optional[float] = ..., waited_s: _Optional[float] = ...) -> None: ...

class Exit(_message.Message):
    __slots__ = ("template", "exit_s", "cpu_s", "waited_s")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    EXIT_S_FIELD_NUMBER: _ClassVar[int]
    CPU_S_FIELD_NUMBER: _ClassVar[int]
    WAITED_S_FIELD_NUMBER: _ClassVar[int]
    template: str
    exit_s: float
    cpu_s: float
    waited_s: float
    def __init__(self, template: _Optional[str] = ..., exit_s: _Optional[float] = ..., cpu_s: _Optional[float] = ..., waited_s: _Optional[float] = ...) -> None: ...
