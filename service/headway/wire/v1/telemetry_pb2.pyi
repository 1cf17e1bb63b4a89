from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_KIND_UNSPECIFIED: _ClassVar[EventKind]
    EVENT_KIND_ENQUEUED: _ClassVar[EventKind]
    EVENT_KIND_STARTED: _ClassVar[EventKind]
    EVENT_KIND_FINISHED: _ClassVar[EventKind]
    EVENT_KIND_FAILED: _ClassVar[EventKind]
    EVENT_KIND_RETRIED: _ClassVar[EventKind]

class Suspension(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUSPENSION_UNSPECIFIED: _ClassVar[Suspension]
    SUSPENSION_NONE: _ClassVar[Suspension]
    SUSPENSION_LIBRARY: _ClassVar[Suspension]
    SUSPENSION_CONSUMERS_CANCELLED: _ClassVar[Suspension]
    SUSPENSION_NO_CONSUMERS: _ClassVar[Suspension]

class Redelivery(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REDELIVERY_UNSPECIFIED: _ClassVar[Redelivery]
    REDELIVERY_VISIBILITY_TIMEOUT: _ClassVar[Redelivery]
    REDELIVERY_CLEAN_UP: _ClassVar[Redelivery]
EVENT_KIND_UNSPECIFIED: EventKind
EVENT_KIND_ENQUEUED: EventKind
EVENT_KIND_STARTED: EventKind
EVENT_KIND_FINISHED: EventKind
EVENT_KIND_FAILED: EventKind
EVENT_KIND_RETRIED: EventKind
SUSPENSION_UNSPECIFIED: Suspension
SUSPENSION_NONE: Suspension
SUSPENSION_LIBRARY: Suspension
SUSPENSION_CONSUMERS_CANCELLED: Suspension
SUSPENSION_NO_CONSUMERS: Suspension
REDELIVERY_UNSPECIFIED: Redelivery
REDELIVERY_VISIBILITY_TIMEOUT: Redelivery
REDELIVERY_CLEAN_UP: Redelivery

class IngestRequest(_message.Message):
    __slots__ = ("producer", "sequence", "sent_at_s", "events", "samples", "activities", "counts", "polls", "receptions", "revoked")
    PRODUCER_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SENT_AT_S_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    ACTIVITIES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    POLLS_FIELD_NUMBER: _ClassVar[int]
    RECEPTIONS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    producer: str
    sequence: int
    sent_at_s: float
    events: _containers.RepeatedCompositeFieldContainer[JobEvent]
    samples: _containers.RepeatedCompositeFieldContainer[QueueSample]
    activities: _containers.RepeatedCompositeFieldContainer[WorkerActivity]
    counts: _containers.RepeatedCompositeFieldContainer[QueueCounts]
    polls: _containers.RepeatedCompositeFieldContainer[BrokerPoll]
    receptions: _containers.RepeatedCompositeFieldContainer[QueueReceptions]
    revoked: _containers.RepeatedCompositeFieldContainer[JobEvent]
    def __init__(self, producer: _Optional[str] = ..., sequence: _Optional[int] = ..., sent_at_s: _Optional[float] = ..., events: _Optional[_Iterable[_Union[JobEvent, _Mapping]]] = ..., samples: _Optional[_Iterable[_Union[QueueSample, _Mapping]]] = ..., activities: _Optional[_Iterable[_Union[WorkerActivity, _Mapping]]] = ..., counts: _Optional[_Iterable[_Union[QueueCounts, _Mapping]]] = ..., polls: _Optional[_Iterable[_Union[BrokerPoll, _Mapping]]] = ..., receptions: _Optional[_Iterable[_Union[QueueReceptions, _Mapping]]] = ..., revoked: _Optional[_Iterable[_Union[JobEvent, _Mapping]]] = ...) -> None: ...

class IngestResponse(_message.Message):
    __slots__ = ("is_duplicate", "accepted_events", "accepted_samples", "corrected_times", "refused_items", "refused")
    IS_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    CORRECTED_TIMES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_ITEMS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    is_duplicate: bool
    accepted_events: int
    accepted_samples: int
    corrected_times: int
    refused_items: int
    refused: str
    def __init__(self, is_duplicate: bool = ..., accepted_events: _Optional[int] = ..., accepted_samples: _Optional[int] = ..., corrected_times: _Optional[int] = ..., refused_items: _Optional[int] = ..., refused: _Optional[str] = ...) -> None: ...

class JobEvent(_message.Message):
    __slots__ = ("queue", "job_id", "kind", "at_s", "enqueued_at_s", "started_at_s", "job_class", "attempt", "received_at_s", "is_redelivered")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_S_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_AT_S_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_S_FIELD_NUMBER: _ClassVar[int]
    JOB_CLASS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_AT_S_FIELD_NUMBER: _ClassVar[int]
    IS_REDELIVERED_FIELD_NUMBER: _ClassVar[int]
    queue: str
    job_id: str
    kind: EventKind
    at_s: float
    enqueued_at_s: float
    started_at_s: float
    job_class: str
    attempt: int
    received_at_s: float
    is_redelivered: bool
    def __init__(self, queue: _Optional[str] = ..., job_id: _Optional[str] = ..., kind: _Optional[_Union[EventKind, str]] = ..., at_s: _Optional[float] = ..., enqueued_at_s: _Optional[float] = ..., started_at_s: _Optional[float] = ..., job_class: _Optional[str] = ..., attempt: _Optional[int] = ..., received_at_s: _Optional[float] = ..., is_redelivered: bool = ...) -> None: ...

class QueueSample(_message.Message):
    __slots__ = ("queue", "at_s", "waiting_jobs", "in_flight_jobs", "delayed_jobs", "oldest_age_s", "reserved_jobs", "oldest_age_max_s", "reports_arrivals", "reports_starts", "reports_ends", "poll_interval_s", "listed_workers", "suspension", "useful_workers", "message_ttl_s", "redelivery", "waiting_min_jobs", "in_flight_min_jobs", "due")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    AT_S_FIELD_NUMBER: _ClassVar[int]
    WAITING_JOBS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_JOBS_FIELD_NUMBER: _ClassVar[int]
    DELAYED_JOBS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_S_FIELD_NUMBER: _ClassVar[int]
    RESERVED_JOBS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_MAX_S_FIELD_NUMBER: _ClassVar[int]
    REPORTS_ARRIVALS_FIELD_NUMBER: _ClassVar[int]
    REPORTS_STARTS_FIELD_NUMBER: _ClassVar[int]
    REPORTS_ENDS_FIELD_NUMBER: _ClassVar[int]
    POLL_INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    LISTED_WORKERS_FIELD_NUMBER: _ClassVar[int]
    SUSPENSION_FIELD_NUMBER: _ClassVar[int]
    USEFUL_WORKERS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_TTL_S_FIELD_NUMBER: _ClassVar[int]
    REDELIVERY_FIELD_NUMBER: _ClassVar[int]
    WAITING_MIN_JOBS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_MIN_JOBS_FIELD_NUMBER: _ClassVar[int]
    DUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    at_s: float
    waiting_jobs: int
    in_flight_jobs: int
    delayed_jobs: int
    oldest_age_s: float
    reserved_jobs: int
    oldest_age_max_s: float
    reports_arrivals: bool
    reports_starts: bool
    reports_ends: bool
    poll_interval_s: float
    listed_workers: int
    suspension: Suspension
    useful_workers: int
    message_ttl_s: float
    redelivery: Redelivery
    waiting_min_jobs: int
    in_flight_min_jobs: int
    due: _containers.RepeatedCompositeFieldContainer[DueJobs]
    def __init__(self, queue: _Optional[str] = ..., at_s: _Optional[float] = ..., waiting_jobs: _Optional[int] = ..., in_flight_jobs: _Optional[int] = ..., delayed_jobs: _Optional[int] = ..., oldest_age_s: _Optional[float] = ..., reserved_jobs: _Optional[int] = ..., oldest_age_max_s: _Optional[float] = ..., reports_arrivals: bool = ..., reports_starts: bool = ..., reports_ends: bool = ..., poll_interval_s: _Optional[float] = ..., listed_workers: _Optional[int] = ..., suspension: _Optional[_Union[Suspension, str]] = ..., useful_workers: _Optional[int] = ..., message_ttl_s: _Optional[float] = ..., redelivery: _Optional[_Union[Redelivery, str]] = ..., waiting_min_jobs: _Optional[int] = ..., in_flight_min_jobs: _Optional[int] = ..., due: _Optional[_Iterable[_Union[DueJobs, _Mapping]]] = ...) -> None: ...

class DueJobs(_message.Message):
    __slots__ = ("within_s", "jobs")
    WITHIN_S_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    within_s: float
    jobs: int
    def __init__(self, within_s: _Optional[float] = ..., jobs: _Optional[int] = ...) -> None: ...

class QueueCounts(_message.Message):
    __slots__ = ("queue", "at_s", "epoch", "arrived_jobs", "started_jobs", "finished_jobs", "failed_jobs")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    AT_S_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ARRIVED_JOBS_FIELD_NUMBER: _ClassVar[int]
    STARTED_JOBS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_JOBS_FIELD_NUMBER: _ClassVar[int]
    FAILED_JOBS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    at_s: float
    epoch: str
    arrived_jobs: int
    started_jobs: int
    finished_jobs: int
    failed_jobs: int
    def __init__(self, queue: _Optional[str] = ..., at_s: _Optional[float] = ..., epoch: _Optional[str] = ..., arrived_jobs: _Optional[int] = ..., started_jobs: _Optional[int] = ..., finished_jobs: _Optional[int] = ..., failed_jobs: _Optional[int] = ...) -> None: ...

class WorkerActivity(_message.Message):
    __slots__ = ("host", "pid", "is_busy", "busy_since_s", "ended_jobs", "running_jobs", "is_withdrawn", "busy_queue")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    IS_BUSY_FIELD_NUMBER: _ClassVar[int]
    BUSY_SINCE_S_FIELD_NUMBER: _ClassVar[int]
    ENDED_JOBS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_JOBS_FIELD_NUMBER: _ClassVar[int]
    IS_WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    BUSY_QUEUE_FIELD_NUMBER: _ClassVar[int]
    host: str
    pid: int
    is_busy: bool
    busy_since_s: float
    ended_jobs: int
    running_jobs: int
    is_withdrawn: bool
    busy_queue: str
    def __init__(self, host: _Optional[str] = ..., pid: _Optional[int] = ..., is_busy: bool = ..., busy_since_s: _Optional[float] = ..., ended_jobs: _Optional[int] = ..., running_jobs: _Optional[int] = ..., is_withdrawn: bool = ..., busy_queue: _Optional[str] = ...) -> None: ...

class BrokerPoll(_message.Message):
    __slots__ = ("connection", "at_s", "until_s", "after_s", "queues", "finds_all")
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    AT_S_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    AFTER_S_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    FINDS_ALL_FIELD_NUMBER: _ClassVar[int]
    connection: str
    at_s: float
    until_s: float
    after_s: float
    queues: _containers.RepeatedCompositeFieldContainer[PolledQueue]
    finds_all: bool
    def __init__(self, connection: _Optional[str] = ..., at_s: _Optional[float] = ..., until_s: _Optional[float] = ..., after_s: _Optional[float] = ..., queues: _Optional[_Iterable[_Union[PolledQueue, _Mapping]]] = ..., finds_all: bool = ...) -> None: ...

class PolledQueue(_message.Message):
    __slots__ = ("queue", "waiting_jobs", "held_jobs", "consumers", "entered", "is_complete", "is_ordered")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WAITING_JOBS_FIELD_NUMBER: _ClassVar[int]
    HELD_JOBS_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    ENTERED_FIELD_NUMBER: _ClassVar[int]
    IS_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    IS_ORDERED_FIELD_NUMBER: _ClassVar[int]
    queue: str
    waiting_jobs: int
    held_jobs: int
    consumers: int
    entered: _containers.RepeatedCompositeFieldContainer[EnteredJob]
    is_complete: bool
    is_ordered: bool
    def __init__(self, queue: _Optional[str] = ..., waiting_jobs: _Optional[int] = ..., held_jobs: _Optional[int] = ..., consumers: _Optional[int] = ..., entered: _Optional[_Iterable[_Union[EnteredJob, _Mapping]]] = ..., is_complete: bool = ..., is_ordered: bool = ...) -> None: ...

class EnteredJob(_message.Message):
    __slots__ = ("job_id", "attempt")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    attempt: int
    def __init__(self, job_id: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class QueueReceptions(_message.Message):
    __slots__ = ("queue", "since_s", "until_s", "received_at_s", "workers", "is_prompt", "is_whole")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_AT_S_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    IS_PROMPT_FIELD_NUMBER: _ClassVar[int]
    IS_WHOLE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    since_s: float
    until_s: float
    received_at_s: _containers.RepeatedScalarFieldContainer[float]
    workers: int
    is_prompt: bool
    is_whole: bool
    def __init__(self, queue: _Optional[str] = ..., since_s: _Optional[float] = ..., until_s: _Optional[float] = ..., received_at_s: _Optional[_Iterable[float]] = ..., workers: _Optional[int] = ..., is_prompt: bool = ..., is_whole: bool = ...) -> None: ...
