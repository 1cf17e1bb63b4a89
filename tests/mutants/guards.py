"""What is done first so that a crash in between is harmless, each left out or moved: a test must find that it is missing.

Nobody sees such a mistake until something is killed at the wrong moment. Each guard is a place by its function and a
pattern, as ``places.py`` says, and what stands there instead.
"""
# ruff: noqa: E501 - a pattern is one string

from dataclasses import dataclass

AGENT, STORE, CONTROL = "service/headway/agent", "service/headway/store", "service/headway/control"
EMIT, COLLECT, LOCAL, CLI, SPARK = (
    "service/headway/emit",
    "service/headway/collect",
    "service/headway/local",
    "service/headway/cli",
    "sparkjobs/headway_spark",
)

FLEET = ("agent/test_fleet.py", "agent/test_begun.py", "agent/test_boot_clocks.py", "agent/test_output.py")
WRITTEN = ("agent/test_written_first.py", "agent/test_folder.py", "agent/test_link.py", "agent/test_isolation.py")
EVIDENCE = (
    "agent/test_busy.py",
    "agent/test_worker_reports.py",
    "agent/test_inability.py",
    "agent/test_job_events.py",
    "agent/test_never_idle_at_work.py",
)
OUTBOX = ("emit/test_outbox.py", "collect/test_loop.py")
INGEST = ("control/test_ingest.py", "store/test_event_log.py", "store/test_telemetry.py")
LEADING = ("store/test_leadership.py", "control/test_leadership.py", "control/test_tick.py")
LOG = ("spark/test_archive.py", "spark/test_rebuild.py", "spark/test_source_log.py")
BACKUP = ("cli/test_backup.py",)


@dataclass(frozen=True, slots=True)
class Guard:
    """One that is gone: in a function of ``module``, below ``root``, ``right`` becomes ``wrong``."""

    module: str
    within: str
    right: str
    wrong: str
    tests: tuple[str, ...]
    """Where it is found."""
    root: str
    tests_in: str = "tests"

    @property
    def name(self) -> str:
        """Which module, in a table."""
        return f"{self.root.rpartition('/')[2]}/{self.module}"


def _of(folder: str, tests: tuple[str, ...], *changes: tuple[str, str, str, str]) -> tuple[Guard, ...]:
    return tuple(Guard(*change, tests, root=folder) for change in changes)


GUARDS = (
    *_of(
        AGENT,
        FLEET,
        ("workers/manager.py", "WorkerManager.act", "if to_spawn:\n    self.save()", "if to_spawn:\n    pass"),
        (
            "workers/manager.py",
            "WorkerManager._request_stops",
            "self.save()\nfor held in to_stop:\n    held.request_stop(now_s=self._clock())",
            "for held in to_stop:\n    held.request_stop(now_s=self._clock())",
        ),
        ("workers/starts/spawner.py", "Spawner.spawn", "self.starts.note(worker.record)", "pass"),
        ("workers/manager.py", "WorkerManager.scan", "if self._logbook.is_behind:\n    self.save()", ""),
        ("workers/worker_record.py", "placed", "uid_of(template) if template else None", "None"),
        (
            "workers/worker_logs.py",
            "WorkerLogs.create",
            "os.O_WRONLY | os.O_CREAT | os.O_EXCL",
            "os.O_WRONLY | os.O_CREAT",
        ),
        (
            "workers/recovery.py",
            "_begun",
            "worker_marks.prints_to(each.pid, place.worker_id, output)",
            "(lambda *_: True)(each.pid, place.worker_id, output)",
        ),
        ("workers/recovery.py", "_begun", "len(mains) != 1", "not mains"),
        (
            "workers/recovery.py",
            "_was_begun_for",
            "is_in_time and place.uid is not None and procfs.uid(process.pid) == place.uid",
            "place.uid is not None and procfs.uid(process.pid) == place.uid",
        ),
        (
            "workers/recovery.py",
            "_begun",
            "[each for each in fitting if each.pid not in children]",
            "[each for each in fitting ]",
        ),
        (
            "workers/recovery.py",
            "_RecordedProcesses._by_output",
            "not worker_marks.prints_to(record.pid, record.worker_id, self._output)",
            "(lambda *_: False)(record.pid, record.worker_id, self._output)",
        ),
        (
            "workers/recovery.py",
            "_RecordedProcesses.worker",
            "_by_start(record) or self._by_output(record) or self._by_marks(record, started_as=record.uid)",
            "_by_start(record) or self._by_output(record)",
        ),
        (
            "workers/recovery.py",
            "_RecordedProcesses.worker",
            "_by_start(record) or self._by_output(record) or self._by_marks(record, started_as=record.uid)",
            "_by_start(record) or self._by_marks(record, started_as=record.uid)",
        ),
        ("workers/journal.py", "WorkerJournal.write", "is_durable or was_refused", "is_durable"),
        ("workers/journal.py", "WorkerJournal.write", "is_durable or was_refused", "False"),
    ),
    *_of(
        AGENT,
        ("agent/test_backoff.py", "agent/test_fleet.py", "agent/test_cut_jobs.py", "agent/test_recycling.py"),
        (
            "workers/starts/start_gate.py",
            "StartGate.check",
            "self._is_open(kind, now_s) or self._begin_trial(kind, now_s)",
            "self._is_open(kind, now_s)",
        ),
        (
            "workers/starts/start_gate.py",
            "StartGate._begin_trial",
            "self.backoff = self.backoff.tried(kind, now_s=now_s)",
            "",
        ),
        ("workers/manager.py", "WorkerManager.scan", "self._gate.note_survivors(now_s=now_s)", ""),
        (
            "workers/crash_backoff.py",
            "Backoff.failed",
            "known is None or has_done_jobs or now_s - known.until_s >= CRASH_BACKOFF_RESET_S",
            "known is None or now_s - known.until_s >= CRASH_BACKOFF_RESET_S",
        ),
        (
            "workers/crash_backoff.py",
            "Backoff.survived",
            "pause is None or now_s >= pause.until_s or started_at_s <= pause.failed_at_s",
            "pause is None or now_s >= pause.until_s",
        ),
        (
            "workers/ends/cut_watch.py",
            "CutWatch.note_end",
            "record.life.state in _AT_WORK or bool(said.running)",
            "record.life.state in _AT_WORK",
        ),
        (
            "workers/ends/cut_jobs.py",
            "CutLog._named",
            "known.job.started_at_s + SAME_START_S",
            "known.job.started_at_s + 1e9",
        ),
        (
            "policy/recycling.py",
            "Recycling._note_fresh",
            "record.worker_id not in self._have_worked and now_s - record.life.started_at_s <= fresh_s",
            "now_s - record.life.started_at_s <= fresh_s",
        ),
        (
            "policy/recycling.py",
            "Recycling.worn",
            "self._oversized.get(template.name) == template",
            "template.name in self._oversized",
        ),
    ),
    *_of(
        COLLECT,
        ("collect/test_rq_given_up.py",),
        (
            "job_memory.py",
            "JobMemory.is_old",
            "failed_at_s if record.ended_at_s is None else record.ended_at_s",
            "record.ended_at_s",
        ),
        (
            "job_lifecycle.py",
            "_end_of_life",
            "ended_at_s is None and not is_begun and _retries_used(reported, record) <= 0",
            "ended_at_s is None and not is_begun",
        ),
    ),
    *_of(
        STORE,
        ("control/http/test_cut_jobs.py", "store/test_hosts.py"),
        ("hosts/poison_jobs.py", "list_poison", "(...).where(job_cuts.c.is_certain, ...)", "(...).where(...)"),
        (
            "hosts/poison_jobs.py",
            "list_poison",
            "(...).where(job_cuts.c.is_certain, job_cuts.c.job_id.is_not(None), ...)",
            "(...).where(job_cuts.c.is_certain, ...)",
        ),
        (
            "hosts/poison_jobs.py",
            "list_poison",
            "(...).having(func.count() >= POISON_DEATHS_MIN, last_at > func.now() - seconds(POISON_SHOWN_S))",
            "(...).having(func.count() >= POISON_DEATHS_MIN)",
        ),
        (
            "hosts/host_reports.py",
            "_host_to_json",
            "worker.state is WorkerState.RUNNING and report.received_at_s - worker.started_at_s >= STAYS_AFTER_S",
            "worker.state is WorkerState.RUNNING",
        ),
    ),
    *_of(
        AGENT,
        WRITTEN,
        ("state/state_dir.py", "StateFolder.save_identity", "os.fsync(folder)", "pass"),
        (
            "controlplane/session.py",
            "ControlSession._report",
            "self._contact.commit_to(isolation_limits_s(batch.templates))",
            "",
        ),
        (
            "controlplane/session.py",
            "ControlSession._report",
            "self._contact.commit_to(isolation_limits_s(batch.templates))",
            "self._pending.reported(batch)\nself._contact.commit_to(isolation_limits_s(batch.templates))",
        ),
        ("controlplane/enrolment.py", "Membership.renew", "self._folder.save_identity(fresh)", "pass"),
        (
            "controlplane/enrolment.py",
            "Membership.renew",
            "log.error('not written file=identity.json: %s; the old credential stays in use', error)\nreturn",
            'log.error("not written file=identity.json: %s; x", error)',
        ),
        ("controlplane/enrolment.py", "Membership._keep", "identity.credential != before.credential", "False"),
        ("controlplane/enrolment.py", "Membership._keep", "self._folder.save_identity(identity)", "pass"),
        ("controlplane/isolation.py", "Contact.commit_to", "self._write()", ""),
        (
            "controlplane/isolation.py",
            "Contact.commit_to",
            "_least(self._promised, self._reporting)",
            "self._reporting",
        ),
    ),
    *_of(
        AGENT,
        ("agent/test_loop.py", "agent/test_several_controls.py", "agent/test_written_first.py"),
        ("loop.py", "Agent._maintain", "fleet.save(is_durable=has_orders)", "pass"),
        ("loop.py", "Agent.run", "fleet.adopt()", ""),
    ),
    *_of(
        EMIT,
        OUTBOX,
        ("outbox.py", "Outbox.push", "self._write()", ""),
        ("outbox.py", "Outbox.offer", "self._is_written &= not self._pending.events", ""),
        ("outbox.py", "Outbox._taken_number", "self._is_written = False", ""),
        ("outbox.py", "Outbox.offer", "self.keep(cursor)", "pass"),
        ("outbox.py", "Outbox.close", "self._is_written = False\nself._write()", "pass"),
        ("outbox.py", "Outbox._write", "pending is not None", "False and pending is not None"),
        ("outbox_folder.py", "write_json", "sync_folder(file.parent)", ""),
    ),
    *_of(
        LOCAL,
        (*WRITTEN, *OUTBOX),
        ("files.py", "write_whole", "if is_durable:\n    os.fsync(file)", ""),
        ("files.py", "sync_folder", "os.fsync(folder)", "pass"),
        ("files.py", "write_whole", 'f"{path}.new"', "path"),
        ("locks.py", "only_process", "if not is_free:\n    raise held_by(holder_of(file))", ""),
    ),
    *_of(
        COLLECT,
        ("collect/test_loop.py", "collect/test_rq_exactly_once.py"),
        (
            "collector_loop.py",
            "Collector.turn",
            "not self._outbox.is_empty and not self._outbox.push()",
            "not self._outbox.is_empty",
        ),
        ("collector_loop.py", "Collector._send", "self._outbox.keep(self._cursor())", "pass"),
        ("collector_loop.py", "Collector._send", "self._cursor() if events else None", "None"),
        (
            "collector_loop.py",
            "Collector._forget_half_taken",
            "self._source, self._news = self._opened(), ChangeFilter()",
            "",
        ),
        (
            "collector_loop.py",
            "Collector._send",
            "self._news.sent(some_samples, some_activities, at_s=reading.at_s)",
            "(lambda *_, **__: None)(some_samples, some_activities, at_s=reading.at_s)",
        ),
    ),
    *_of(
        STORE,
        INGEST,
        ("events/event_log.py", "EventLog.write_tmp", "os.fsync(file.fileno())", ""),
        ("events/event_log.py", "EventLog.write_tmp", "sync_folder(self._tmp)", "pass"),
        ("events/event_log.py", "EventLog.publish", "sync_folder(self._hot)", "pass"),
        ("events/event_log.py", "EventLog.create", "os.fsync(file.fileno())", ""),
        ("events/event_log.py", "_hold", "os.path.samestat(os.fstat(descriptor), path.stat())", "True"),
        ("events/event_log.py", "_hold", "fcntl.flock(descriptor, fcntl.LOCK_EX)", ""),
        ("events/event_log.py", "EventLog.recover", "os.utime(self._tmp / name)", "pass"),
        ("events/event_log.py", "EventLog.write_tmp", "self._require(self._marker)", ""),
        ("events/batches.py", "recorded_files", "attempt.rollback()", "attempt.commit()"),
        (
            "events/batches.py",
            "",
            "'as file on conflict do nothing returning file'",
            "'as file where not exists (select from event_files) on conflict do nothing returning file'",
        ),
    ),
    *_of(
        CONTROL,
        INGEST,
        ("ingest/ingest.py", "Ingest._flush", "self._in_doubt.append(file)", ""),
        ("ingest/ingest.py", "Ingest._prepare", "await settle(self._engine, self._event_log, self._in_doubt)", ""),
        ("ingest/ingest.py", "Ingest._store", "if rows:\n    ...", "if rows and False:\n    ..."),
        ("ingest/ingest.py", "Ingest._sweep", "await recover(self._engine, self._event_log)", ""),
        ("ingest/ingest.py", "Ingest._flush", "first.setdefault(waiting.key, waiting)", "first[waiting.key] = waiting"),
    ),
    *_of(
        STORE,
        LEADING,
        ("leadership.py", "fence", "(...).with_for_update(read=True)", "..."),
        ("leadership.py", "LeaderSession.try_lead", "await self.renew(epoch)", ""),
        ("leadership.py", "LeaderSession.try_lead", "'extract(epoch from clock_timestamp())::bigint'", "'0'"),
        ("leadership.py", "fence", 'f"{FENCED_IDLE_S}s"', '"0"'),
        ("leadership.py", "note_ahead", "0", "epoch"),
        ("pools/evaluation_io.py", "apply", "await fence(connection, epoch=epoch)", ""),
        ("pools/evaluation_io.py", "hold_hosts", "await fence(connection, epoch=epoch)", ""),
        ("pools/evaluation_io.py", "_save_assignments", "await notify_hosts(connection, host_ids)", ""),
    ),
    *_of(
        CONTROL,
        LEADING,
        ("scheduler/leader.py", "Leadership._renew", "stuck_s <= LEADER_LEASE_S", "True"),
        (
            "scheduler/leader.py",
            "Leadership.step_down",
            "if self.epoch == epoch:\n    self.epoch = None",
            "self.epoch = None",
        ),
        ("scheduler/leader.py", "Leadership.run", "self.epoch = None", "pass"),
    ),
    *_of(
        STORE,
        ("store/test_rollups.py", "store/test_sink.py", "store/test_retention.py", "store/test_partitions.py"),
        ("metrics/rollups.py", "_roll_up", "_save(connection, done)", "pass"),
        (
            "metrics/rollups.py",
            "_roll_up",
            "_Progress(revision=..., minutes_until_s=minutes_until_s, hours_until_s=hours_from_s)",
            "_Progress(revision=..., minutes_until_s=minutes_until_s, hours_until_s=newest_s)",
        ),
        ("retention.py", "", "CLAIMS_KEPT_DAYS = 7", "CLAIMS_KEPT_DAYS = 1"),
        ("retention.py", "", "FILES_KEPT_DAYS = 30", "FILES_KEPT_DAYS = 1"),
    ),
    *_of(
        SPARK,
        LOG,
        ("stream/keeper.py", "Keeper._move", "note_taken(self._log_dir, Taken(query=query, number=until))", ""),
        ("stream/keeper.py", "Keeper._move", "[entry for entry in found if entry.number <= until]", "[*found]"),
        ("event_log/archive.py", "_write", "os.fsync(file.fileno())", ""),
        ("event_log/archive.py", "Archive._merge", "sync_folder(self._folder)", ""),
        (
            "event_log/archive.py",
            "Archive._merge",
            "draft.rename(self._merged(part))",
            "shutil.rmtree(part, ignore_errors=True)\ndraft.rename(self._merged(part))",
        ),
        ("event_log/archive.py", "Archive._merge", 'self._folder / f".{part.name}.draft"', "self._merged(part)"),
        (
            "stream/rebuild.py",
            "Rebuild._begun",
            'self._noted(Mark(stage="state", from_s=math.ceil(first_s / REBUILD_ALIGNED_S) * REBUILD_ALIGNED_S))',
            'Mark(stage="state", from_s=math.ceil(first_s / REBUILD_ALIGNED_S) * REBUILD_ALIGNED_S)',
        ),
        ("stream/rebuild.py", "Rebuild.run", 'self._noted(replace(mark, stage="rows"))', 'replace(mark, stage="rows")'),
        ("stream/rebuild.py", "Rebuild._make_state", "sync_tree(self.checkpoint)", ""),
        ("stream/rebuild.py", "Rebuild._make_state", "shutil.rmtree(self.checkpoint, ignore_errors=True)", ""),
    ),
    *_of(
        CLI,
        BACKUP,
        ("local/restore.py", "_put_in_place", 'layout.restoring.write_text("a restore was broken off\\n")', ""),
        ("local/restore.py", "_put_in_place", "order(layout.checkpoint)", "pass"),
        ("local/backup_file.py", "_unpacked", "_words(tar, member) != found", "False"),
        ("local/backup_file.py", "written", "draft.rename(path)", "path.write_bytes(draft.read_bytes())"),
        ("local/backup.py", "_add_events", "seen.counts(path.name, written_at_s=written_s(path))", "True"),
        (
            "local/backup.py",
            "_add_events",
            'path.name in seen.recent_files and _add_one(add, f"{backup_file.HOT}/{path.name}", path)',
            '_add_one(add, f"{backup_file.HOT}/{path.name}", path)',
        ),
    ),
    *_of(
        STORE,
        BACKUP,
        (
            "embedded/dump.py",
            "save",
            '_run("pg_dump", "--format=custom", wait, f"--snapshot={snapshot}", f"--dbname={url}", to=to)',
            '_run("pg_dump", "--format=custom", wait, f"--dbname={url}", to=to)',
        ),
    ),
    *_of(
        AGENT,
        EVIDENCE,
        ("monitoring/activity.py", "weighed", "each.is_busy and _known_at_s(each) >= after_s", "each.is_busy"),
        (
            "monitoring/activity.py",
            "weighed",
            "max(proofs, key=_known_at_s, default=first)",
            "max(proofs, key=_known_at_s, default=Activity(is_busy=False))",
        ),
        (
            "monitoring/activity.py",
            "by_hint",
            "hint is None or now_s - hint.known_at_s > ACTIVITY_HINT_FRESH_S or hint.known_at_s < started_at_s",
            "hint is None or hint.known_at_s < started_at_s",
        ),
        (
            "monitoring/activity.py",
            "by_hint",
            "hint is None or now_s - hint.known_at_s > ACTIVITY_HINT_FRESH_S or hint.known_at_s < started_at_s",
            "hint is None or now_s - hint.known_at_s > ACTIVITY_HINT_FRESH_S",
        ),
        (
            "monitoring/activity.py",
            "of_family",
            "min(hinted, key=_known_at_s, default=NOT_KNOWN)",
            "max(hinted, key=_known_at_s, default=NOT_KNOWN)",
        ),
        (
            "monitoring/activity.py",
            "is_work_horse",
            "process.group == process.pid and _is_copy_of_rq_worker(process)",
            "_is_copy_of_rq_worker(process)",
        ),
        ("monitoring/activity.py", "_is_copy_of_rq_worker", "own == parents or has_rq_title(own)", "True"),
        (
            "monitoring/activity.py",
            "ProcessWatch.see",
            "NOT_KNOWN",
            "Activity(is_busy=False, source=ActivitySource.CPU, known_at_s=sample.at_s)",
        ),
        ("monitoring/activity.py", "ActivityTracker.activity", "shown if is_fresh else NOT_KNOWN", "shown"),
        (
            "reporting/worker_report.py",
            "WorkerReport._is_idle",
            "beat is None or not self._is_whole or now_s - beat.received_at_s > BEAT_FRESH_S",
            "beat is None or now_s - beat.received_at_s > BEAT_FRESH_S",
        ),
        (
            "reporting/worker_report.py",
            "WorkerReport._is_idle",
            "beat is None or not self._is_whole or now_s - beat.received_at_s > BEAT_FRESH_S",
            "beat is None or not self._is_whole",
        ),
        (
            "reporting/worker_report.py",
            "WorkerReport._is_idle",
            "beat.received_at_s - self._loop_moved_at_s < LOOP_STILL_S",
            "True",
        ),
        (
            "reporting/worker_report.py",
            "WorkerReport._conclude",
            "known.is_listed or known.missed_beats >= BEATS_WITHOUT_START",
            "True",
        ),
        ("reporting/worker_report.py", "WorkerReport._conclude", "before is None or last.lost <= before.lost", "True"),
        (
            "reporting/worker_report.py",
            "WorkerReport._conclude",
            "self._unnamed_jobs = gathering.others",
            "self._unnamed_jobs = 0",
        ),
        (
            "reporting/job_events.py",
            "_by_own_name",
            "{own: next(iter(found)) for own, found in named.items() if len(found) == 1}",
            "{own: next(iter(found)) for own, found in named.items() }",
        ),
        (
            "monitoring/inability.py",
            "InabilityWatch.scan",
            "known.found is known.confirmed or now_s - known.since_s >= INABILITY_AFTER_S",
            "True",
        ),
        (
            "monitoring/inability.py",
            "InabilityWatch._first",
            "_Watched(pool=record.pool, found=before.inability, since_s=now_s - INABILITY_AFTER_S, confirmed=before.inability, slots_max=before.slots_max, had_queues=before.had_queues, resumed_at_s=now_s)",
            "_Watched(pool=record.pool, found=before.inability, since_s=now_s - INABILITY_AFTER_S, confirmed=before.inability, slots_max=before.slots_max, resumed_at_s=now_s)",
        ),
        (
            "monitoring/inability.py",
            "_of_beat",
            "beat is None or now_s - beat.received_at_s > BEAT_FRESH_S or beat.is_stopping",
            "beat is None or now_s - beat.received_at_s > BEAT_FRESH_S or False",
        ),
        ("monitoring/inability.py", "_of_beat", "if not is_turning:\n    return None", ""),
        ("monitoring/inability.py", "_of_beat", "known.had_queues and not beat.queues", "not beat.queues"),
        ("monitoring/inability.py", "_of_beat", "min(slots, known.slots_max)", "slots"),
    ),
    *_of(
        AGENT,
        ("agent/test_suspended_starts.py", "agent/test_inability.py"),
        ("workers/reaper.py", "Reaper._life_after", "life = lifecycle.over(life, now_s=now_s)", "pass"),
        (
            "workers/starts/suspended_starts.py",
            "SuspendedStarts.note",
            "self._until_s[kind] = now_s + SUSPENDED_START_PAUSE_S",
            "",
        ),
        (
            "monitoring/inability.py",
            "InabilityWatch.spared",
            "each.pool not in able and now_s - each.since_s < INABILITY_AFTER_S + SUSPENSION_SAID_S",
            "now_s - each.since_s < INABILITY_AFTER_S + SUSPENSION_SAID_S",
        ),
    ),
    *_of(
        CONTROL,
        ("control/test_tick_suspended.py", "control/http/test_pools.py", "control/http/test_incidents.py"),
        ("scheduler/ticker.py", "Ticker.tick", "{**..., **_turned(gathered, self._evaluation.suspended)}", "{**...}"),
        (
            "scheduler/evaluator.py",
            "Evaluator._marked",
            "are_suspended.get(row.pool, row.is_suspended)",
            "row.is_suspended",
        ),
        (
            "scheduler/view_builder.py",
            "ViewBuilder._suspension",
            "(sample := self._gathered.direct.get(queue)) is not None and sample.at_s >= oldest_s",
            "(sample := self._gathered.direct.get(queue)) is not None",
        ),
        (
            "http/overview/pool_summary.py",
            "facts_of",
            "is_kept_from_jobs or (has_start_failure and counts.running and not is_failing)",
            "False or (has_start_failure and counts.running and not is_failing)",
        ),
        ("http/overview/alerting.py", "conditions_of", "kind in WITH_OWN_INCIDENT", "False"),
        ("http/overview/alerting.py", "_of_pool", "condition.severity.value", "PAGE"),
    ),
    *_of(
        COLLECT,
        ("collect/test_priority_lists.py", "collect/test_binding_members.py"),
        ("celery/priority_lists.py", "PriorityLists._queue_of", "if name in queues:\n    return None", ""),
        (
            "celery/priority_lists.py",
            "PriorityLists._queue_of",
            "queue in queues and priority.isdecimal() and separator in self._bindings.separators_of(queue)",
            "queue in queues and priority.isdecimal()",
        ),
        (
            "celery/priority_lists.py",
            "PriorityLists._queue_of",
            "name.rpartition(separator)",
            "name.partition(separator)",
        ),
        ("celery/priority_lists.py", "PriorityLists.take", "self._passed_over.clear()", ""),
        ("celery/priority_lists.py", "PriorityLists._taken", "self._renew(queue)", ""),
        (
            "celery/celery_source.py",
            "CelerySource._poll",
            "frozenset(islice(self._bindings.queues, known, None)) | found",
            "frozenset(islice(self._bindings.queues, known, None))",
        ),
        (
            "celery/celery_source.py",
            "CelerySource._take_lists",
            "self._queue_empty_at_s.pop(queue, None)",
            "self._queue_empty_at_s.get(queue)",
        ),
        (
            "celery/celery_source.py",
            "CelerySource._take_lists",
            "was_whole and self._polled_at_s is not None",
            "self._polled_at_s is not None",
        ),
        (
            "celery/celery_source.py",
            "CelerySource._sample",
            "count.waiting_jobs if is_counted else None",
            "count.waiting_jobs",
        ),
        (
            "celery/celery_source.py",
            "CelerySource._with_jobs",
            "self._groups is None or self._groups.queues != queues or self._groups.version != version",
            "self._groups is None or self._groups.queues != queues",
        ),
        ("celery/queue_bindings.py", "QueueBindings._take_lists", "self._filters_types = False", "pass"),
        (
            "celery/queue_bindings.py",
            "QueueBindings._note_separator",
            "self.further_separators[queue] = [*known, separator]",
            "pass",
        ),
    ),
    *_of(
        COLLECT,
        ("collect/test_unseen_ends.py", "collect/test_rq.py"),
        ("rq/unseen_ends.py", "UnseenEnds.explain", "self._unseen[served] -= found", ""),
        ("rq/unseen_ends.py", "UnseenEnds.explain", "queue in served", "True"),
        (
            "rq/unseen_ends.py",
            "UnseenEnds.explain",
            "min(jobs - explained, self._unseen[served])",
            "self._unseen[served]",
        ),
        ("rq/unseen_ends.py", "UnseenEnds.take", "if before is None:\n    return", "before = before or {}"),
        ("rq/unseen_ends.py", "UnseenEnds.take", "since if since > 0 else now[key]", "since"),
        ("rq/unseen_ends.py", "UnseenEnds.forget", "self._unseen.clear()", "pass"),
    ),
    *_of(
        COLLECT,
        ("collect/test_scheduled_jobs.py",),
        ("rq/scheduled_jobs.py", "scheduled_from", "max(jobs, min(count, later_jobs))", "min(count, later_jobs)"),
        ("rq/scheduled_jobs.py", "scheduled_from", "min(count, later_jobs)", "count"),
        ("rq/scheduled_jobs.py", "scheduled_from", "min(overdue, scheduled_jobs)", "overdue"),
        ("rq/scheduled_jobs.py", "scheduled_from", "min(at_s, *first_due_s.values())", "min(first_due_s.values())"),
    ),
    *_of(
        COLLECT,
        ("collect/test_delayed_delivery.py",),
        ("celery/delayed_delivery.py", "DelayLevels.see", "_Point(each.at_s, min(each.entered, entered))", "each"),
        (
            "celery/delayed_delivery.py",
            "DelayLevels.delayed",
            "max(points[max(0, index - 1)].at_s, points[index].at_s - MASKED_S)",
            "points[index].at_s",
        ),
        (
            "celery/delayed_delivery.py",
            "DelayLevels.delayed",
            "DelayedJobs(jobs=jobs - taken, due_in_s=waits_s)",
            "DelayedJobs(jobs=jobs - taken, due_in_s=2 * waits_s)",
        ),
        ("celery/delayed_delivery.py", "DelayLevels.see", "_Point(at_s, 0.0)", "_Point(at_s - waits_s, 0.0)"),
    ),
    *_of(
        COLLECT,
        ("collect/test_rq_given_up.py",),
        ("rq/stuck_jobs.py", "StuckJobs.see", "at_s - since_s > STUCK_AFTER_S", "at_s - since_s > 0.0"),
    ),
    *_of(
        AGENT,
        ("agent/test_worker_reports.py",),
        (
            "reporting/worker_report.py",
            "WorkerReport._list",
            "known is None and end is not None and job.started_at_s <= end.started_at_s",
            "known is None and end is not None",
        ),
        (
            "reporting/worker_report.py",
            "WorkerReport._conclude",
            "key in gathering.ended or end.at_s >= last.at_s",
            "key in gathering.ended",
        ),
        (
            "reporting/worker_report.py",
            "WorkerReport._conclude",
            "{key: end for key, end in self._ends.items() if key in gathering.ended or end.at_s >= last.at_s}",
            "{key: end for key, end in self._ends.items()}",
        ),
        ("reporting/worker_report.py", "WorkerReport.take", "not said.is_cut", "1"),
        (
            "reporting/worker_report.py",
            "WorkerReport._conclude",
            "self._nameless_jobs = last.unnamed",
            "self._nameless_jobs = 0",
        ),
        (
            "reporting/worker_report.py",
            "WorkerReport._end",
            "if known.begun > 1:\n    known.begun -= 1\nelse:\n    del self._open[attempt]",
            "del self._open[attempt]",
        ),
    ),
    *_of(
        AGENT,
        ("agent/test_done_jobs.py", "agent/test_recycling.py", "agent/test_backoff.py"),
        (
            "workers/ends/done_jobs.py",
            "DoneJobs.note_reports",
            "each.kind is ReportKind.ENDED and not each.is_cut",
            "each.kind is ReportKind.ENDED",
        ),
        (
            "workers/ends/done_jobs.py",
            "DoneJobs.last_s",
            "each.kind == kind and each.started_at_s > started_after_s and each.last_s is not None",
            "each.kind == kind and each.last_s is not None",
        ),
        (
            "workers/ends/done_jobs.py",
            "DoneJobs.note_counts",
            "activity.ended_jobs is not None and activity.ended_jobs > worker.ended_jobs",
            "activity.ended_jobs is not None",
        ),
        (
            "policy/recycling.py",
            "Recycling.worn",
            "self._have_worked &= {record.worker_id for record, _ in workers}",
            "",
        ),
        (
            "policy/recycling.py",
            "Recycling._note_fresh",
            "RECYCLING_FRESH_S if activity.is_busy is False else RECYCLING_FRESH_UNKNOWN_S",
            "RECYCLING_FRESH_S",
        ),
        (
            "workers/crash_backoff.py",
            "Backoff.failed",
            "known is not None and started_at_s < known.until_s and not (has_done_jobs and known.failures > 1)",
            "known is not None and started_at_s < known.until_s",
        ),
    ),
    *_of(
        CONTROL,
        ("control/test_host_events.py",),
        (
            "ingest/host_events.py",
            "HostEvents.own",
            "tuple(each for each in batch.events if each.queue in allowed)",
            "batch.events",
        ),
        ("ingest/host_events.py", "HostEvents.own", 'f"{own_name}-"', "own_name"),
        (
            "ingest/host_events.py",
            "HostEvents.own",
            "batch.samples or batch.activities or batch.counts or batch.polls",
            "batch.samples",
        ),
        (
            "ingest/host_events.py",
            "HostEvents.own",
            "caller.role is Role.INGEST and batch.producer.startswith(AGENT)",
            "False",
        ),
        (
            "ingest/host_events.py",
            "HostEvents._allowed",
            "HOST_QUEUES_KEPT_S if named <= known.names else HOST_QUEUES_REREAD_S",
            "HOST_QUEUES_KEPT_S",
        ),
    ),
)
