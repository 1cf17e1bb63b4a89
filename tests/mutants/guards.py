"""What is done first so that a crash in between is harmless, each left out or moved: a test must find that it is missing.

Nobody sees such a mistake until something is killed at the wrong moment.
"""
# ruff: noqa: E501 - what is replaced stands as it is in the code

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
    """One that is gone: in ``module``, below ``root``, ``right`` becomes ``wrong``."""

    module: str
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


def _of(folder: str, tests: tuple[str, ...], *changes: tuple[str, str, str]) -> tuple[Guard, ...]:
    return tuple(Guard(module, right, wrong, tests, root=folder) for module, right, wrong in changes)


GUARDS = (
    *_of(
        AGENT,
        FLEET,
        ("workers/manager.py", "            self.save()  # first", "            pass  # first"),
        ("workers/manager.py", "        self.save()\n        for held in to_stop:", "        for held in to_stop:"),
        ("workers/starts/spawner.py", "            self._starts.note(worker.record)", "            pass"),
        ("workers/manager.py", "        if self._logbook.is_behind:\n            self.save()\n", ""),
        ("workers/worker_record.py", "uid=uid_of(template) if template else None", "uid=None"),
        (
            "workers/worker_logs.py",
            "os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND",
            "os.O_WRONLY | os.O_CREAT | os.O_APPEND",
        ),
        ("workers/recovery.py", "and worker_marks.prints_to(", "and (lambda *_: True)("),
        ("workers/recovery.py", "if len(mains) != 1:", "if not mains:"),
        ("workers/recovery.py", "return is_in_time and place.uid", "return place.uid"),
        ("workers/recovery.py", "if each.pid not in children]", "]"),
        ("workers/recovery.py", "if not worker_marks.prints_to(", "if (lambda *_: False)("),
        ("workers/recovery.py", "or self._by_marks(record, started_as=record.uid)", ""),
        ("workers/recovery.py", "or self._by_output(record)", ""),
        ("workers/journal.py", "is_durable=is_durable or was_refused", "is_durable=is_durable"),
        ("workers/journal.py", "is_durable=is_durable or was_refused", "is_durable=False"),
    ),
    *_of(
        AGENT,
        ("agent/test_backoff.py", "agent/test_fleet.py", "agent/test_cut_jobs.py", "agent/test_recycling.py"),
        ("workers/starts/start_gate.py", " or self._begin_trial(kind, now_s)", ""),
        (
            "workers/starts/start_gate.py",
            "        self.backoff = self.backoff.tried(kind, now_s=now_s)\n        self._let_through.add(kind)",
            "        self._let_through.add(kind)",
        ),
        ("workers/manager.py", "        self._gate.note_survivors(now_s=now_s)\n", ""),
        ("workers/crash_backoff.py", "known is None or has_done_jobs or now_s", "known is None or now_s"),
        ("workers/crash_backoff.py", " or started_at_s <= pause.failed_at_s", ""),
        ("workers/ends/cut_watch.py", " or bool(said.running)", ""),
        ("workers/ends/cut_jobs.py", "+ SAME_START_S", "+ 1e9"),
        ("policy/recycling.py", "record.worker_id not in self._have_worked and ", ""),
        (
            "policy/recycling.py",
            "if self._oversized.get(template.name) == template:",
            "if template.name in self._oversized:",
        ),
    ),
    *_of(
        COLLECT,
        ("collect/test_rq_given_up.py",),
        ("job_memory.py", "failed_at_s if record.ended_at_s is None else record.ended_at_s", "record.ended_at_s"),
        ("job_lifecycle.py", " and _retries_used(reported, record) <= 0", ""),
    ),
    *_of(
        STORE,
        ("control/http/test_cut_jobs.py", "store/test_hosts.py"),
        ("hosts/poison_jobs.py", "job_cuts.c.is_certain, job_cuts.c.job_id", "job_cuts.c.job_id"),
        ("hosts/poison_jobs.py", "job_cuts.c.job_id.is_not(None), ", ""),
        ("hosts/poison_jobs.py", ", last_at > func.now() - seconds(POISON_SHOWN_S))", ")"),
        (
            "hosts/host_reports.py",
            " and report.received_at_s - worker.started_at_s >= STAYS_AFTER_S",
            "",
        ),
    ),
    *_of(
        AGENT,
        WRITTEN,
        ("state/state_dir.py", "            os.fsync(folder)\n", "            pass\n"),
        (
            "controlplane/session.py",
            "        self._contact.commit_to(isolation_limits_s(batch.update.templates))\n",
            "",
        ),
        (
            "controlplane/session.py",
            "self._contact.commit_to(isolation_limits_s",
            "self._pending.reported(batch)\n        self._contact.commit_to(isolation_limits_s",
        ),
        ("controlplane/enrolment.py", "                self._folder.save_identity(fresh)", "                pass"),
        (
            "controlplane/enrolment.py",
            'the old credential stays in use", error)  # noqa: TRY400\n                return',
            'x", error)',
        ),
        ("controlplane/enrolment.py", "if identity.credential != before.credential:", "if False:"),
        ("controlplane/enrolment.py", "            self._folder.save_identity(identity)", "            pass"),
        (
            "controlplane/isolation.py",
            "            self._promised = both\n        self._write()",
            "            self._promised = both",
        ),
        ("controlplane/isolation.py", "both = _least(self._promised, self._reporting)", "both = self._reporting"),
    ),
    *_of(
        AGENT,
        ("agent/test_loop.py", "agent/test_several_controls.py", "agent/test_written_first.py"),
        ("loop.py", "                fleet.save(is_durable=has_orders)", "                pass"),
        ("loop.py", "            fleet.adopt()\n            fleet.use", "            fleet.use"),
    ),
    *_of(
        EMIT,
        OUTBOX,
        (
            "outbox.py",
            "            self._write()\n            if self._pending is not None:",
            "            if self._pending is not None:",
        ),
        ("outbox.py", "        self._is_written &= not self._pending.events\n", ""),
        (
            "outbox.py",
            "            self._reserved = number + RESERVED_AT_ONCE\n            self._is_written = False",
            "            self._reserved = number + RESERVED_AT_ONCE",
        ),
        (
            "outbox.py",
            "            self.keep(cursor)\n        self._pending",
            "            pass\n        self._pending",
        ),
        ("outbox.py", "            self._is_written = False\n            self._write()", "            pass"),
        (
            "outbox.py",
            "        self._is_written = True\n        self._has_record = pending",
            "        self._is_written = True\n        self._has_record = False and pending",
        ),
        ("outbox_folder.py", "    sync_folder(file.parent)\n", ""),
    ),
    *_of(
        LOCAL,
        (*WRITTEN, *OUTBOX),
        ("files.py", "        if is_durable:\n            os.fsync(file)\n", ""),
        ("files.py", "        os.fsync(folder)\n", "        pass\n"),
        ("files.py", 'fresh = f"{path}.new"', "fresh = path"),
        ("locks.py", "        if not is_free:\n            raise held_by(holder_of(file))\n", ""),
    ),
    *_of(
        COLLECT,
        ("collect/test_loop.py", "collect/test_rq_exactly_once.py"),
        (
            "collector_loop.py",
            "if not self._outbox.is_empty and not self._outbox.push():",
            "if not self._outbox.is_empty:",
        ),
        ("collector_loop.py", "            self._outbox.keep(self._cursor())", "            pass"),
        ("collector_loop.py", "cursor=self._cursor() if events else None", "cursor=None"),
        ("collector_loop.py", "            self._source, self._news = self._opened(), ChangeFilter()\n", ""),
        (
            "collector_loop.py",
            "            self._news.sent(some_samples",
            "            (lambda *_, **__: None)(some_samples",
        ),
    ),
    *_of(
        STORE,
        INGEST,
        (
            "events/event_log.py",
            "                os.fsync(file.fileno())\n                size_bytes",
            "                size_bytes",
        ),
        ("events/event_log.py", "            sync_folder(self._tmp)", "            pass"),
        ("events/event_log.py", "            sync_folder(self._hot)", "            pass"),
        (
            "events/event_log.py",
            "                os.fsync(file.fileno())\n            sync_folder(self.root)",
            "            sync_folder(self.root)",
        ),
        (
            "events/event_log.py",
            "            if os.path.samestat(os.fstat(descriptor), path.stat()):",
            "            if True:",
        ),
        ("events/event_log.py", "        fcntl.flock(descriptor, fcntl.LOCK_EX)\n", ""),
        ("events/event_log.py", "                    os.utime(self._tmp / name)", "                    pass"),
        ("events/event_log.py", "        self._require(self._marker)\n        try:", "        try:"),
        ("events/batches.py", "        await attempt.rollback()", "        await attempt.commit()"),
        (
            "events/batches.py",
            "as file\n    on conflict do nothing returning file",
            "as file\n    where not exists (select from event_files) on conflict do nothing returning file",
        ),
    ),
    *_of(
        CONTROL,
        INGEST,
        ("ingest/ingest.py", "            self._in_doubt.append(file)\n", ""),
        ("ingest/ingest.py", "            await settle(self._engine, self._event_log, self._in_doubt)\n", ""),
        (
            "ingest/ingest.py",
            "            if rows:\n                await record_file(",
            "            if rows and False:\n                await record_file(",
        ),
        ("ingest/ingest.py", "            await recover(self._engine, self._event_log)\n", ""),
        ("ingest/ingest.py", "first.setdefault(waiting.key, waiting)", "first[waiting.key] = waiting"),
    ),
    *_of(
        STORE,
        LEADING,
        ("leadership.py", ".with_for_update(read=True)", ""),
        ("leadership.py", "        await self.renew(epoch)\n        return int(epoch)", "        return int(epoch)"),
        (
            "leadership.py",
            "                    extract(epoch from clock_timestamp())::bigint),",
            "                    0),",
        ),
        (
            "leadership.py",
            '"idle_in_transaction_session_timeout", f"{FENCED_IDLE_S}s"',
            '"idle_in_transaction_session_timeout", "0"',
        ),
        ("leadership.py", "        .values(assignment_epoch=0)", "        .values(assignment_epoch=epoch)"),
        (
            "pools/evaluation_io.py",
            "        await fence(connection, epoch=epoch)\n        await _save",
            "        await _save",
        ),
        (
            "pools/evaluation_io.py",
            "        await fence(connection, epoch=epoch)\n        await pass_over",
            "        await pass_over",
        ),
        ("pools/evaluation_io.py", "    await notify_hosts(connection, host_ids)\n", ""),
    ),
    *_of(
        CONTROL,
        LEADING,
        ("scheduler/leader.py", "            if stuck_s <= LEADER_LEASE_S:", "            if True:"),
        (
            "scheduler/leader.py",
            "        if self.epoch == epoch:\n            self.epoch = None",
            "        self.epoch = None",
        ),
        (
            "scheduler/leader.py",
            "            finally:\n                self.epoch = None\n",
            "            finally:\n                pass\n",
        ),
    ),
    *_of(
        STORE,
        ("store/test_rollups.py", "store/test_sink.py", "store/test_retention.py", "store/test_partitions.py"),
        ("metrics/rollups.py", "    _save(connection, done)  # whatever", "    pass  # whatever"),
        ("metrics/rollups.py", "hours_until_s=hours_from_s)\n    _save", "hours_until_s=newest_s)\n    _save"),
        ("retention.py", "CLAIMS_KEPT_DAYS = 7", "CLAIMS_KEPT_DAYS = 1"),
        ("retention.py", "FILES_KEPT_DAYS = 30", "FILES_KEPT_DAYS = 1"),
    ),
    *_of(
        SPARK,
        LOG,
        ("stream/keeper.py", "        note_taken(self._log_dir, Taken(query=query, number=until))\n", ""),
        ("stream/keeper.py", "counted = [entry for entry in found if entry.number <= until]", "counted = [*found]"),
        ("event_log/archive.py", "        file.flush()\n        os.fsync(file.fileno())\n", "        file.flush()\n"),
        ("event_log/archive.py", "            sync_folder(self._folder)\n", ""),
        (
            "event_log/archive.py",
            "            draft.rename(self._merged(part))\n",
            "            shutil.rmtree(part, ignore_errors=True)\n            draft.rename(self._merged(part))\n",
        ),
        ("event_log/archive.py", 'draft = self._folder / f".{part.name}.draft"', "draft = self._merged(part)"),
        ("stream/rebuild.py", '        return self._noted(Mark(stage="state"', '        return (Mark(stage="state"'),
        (
            "stream/rebuild.py",
            '                mark = self._noted(replace(mark, stage="rows"))',
            '                mark = replace(mark, stage="rows")',
        ),
        ("stream/rebuild.py", "        sync_tree(self.checkpoint)\n", ""),
        ("stream/rebuild.py", "        shutil.rmtree(self.checkpoint, ignore_errors=True)\n", ""),
    ),
    *_of(
        CLI,
        BACKUP,
        ("local/restore.py", '    layout.restoring.write_text("a restore was broken off\\n")\n', ""),
        ("local/restore.py", "    order(layout.checkpoint)  #", "    pass  #"),
        ("local/backup_file.py", "            if _words(tar, member) != found:", "            if False:"),
        ("local/backup_file.py", "        draft.rename(path)", "        path.write_bytes(draft.read_bytes())"),
        ("local/backup.py", "seen.counts(path.name, written_at_s=written_s(path))", "True"),
        ("local/backup.py", "        if path.name in seen.recent_files and _add", "        if _add"),
    ),
    *_of(STORE, BACKUP, ("embedded/dump.py", 'f"--snapshot={snapshot}", ', "")),
    *_of(
        AGENT,
        EVIDENCE,
        ("monitoring/activity.py", "and _known_at_s(each) >= after_s)", ")"),
        ("monitoring/activity.py", "default=first)", "default=Activity(is_busy=False))"),
        ("monitoring/activity.py", "now_s - hint.known_at_s > ACTIVITY_HINT_FRESH_S or ", ""),
        ("monitoring/activity.py", " or hint.known_at_s < started_at_s:", ":"),
        ("monitoring/activity.py", "return min(hinted, key=_known_at_s,", "return max(hinted, key=_known_at_s,"),
        ("monitoring/activity.py", "return process.group == process.pid and _is_copy", "return _is_copy"),
        ("monitoring/activity.py", "(own == parents or has_rq_title(own))", "True"),
        (
            "monitoring/activity.py",
            "            self.activity = NOT_KNOWN\n",
            "            self.activity = Activity(is_busy=False, source=ActivitySource.CPU, known_at_s=sample.at_s)\n",
        ),
        (
            "monitoring/activity.py",
            "weighed(reported, of_family(hinted), shown if is_fresh else NOT_KNOWN)",
            "weighed(reported, of_family(hinted), shown)",
        ),
        ("reporting/worker_report.py", "or not self._is_whole or", "or"),
        ("reporting/worker_report.py", " or now_s - beat.received_at_s > BEAT_FRESH_S:", ":"),
        ("reporting/worker_report.py", "beat.received_at_s - self._loop_moved_at_s < LOOP_STILL_S", "True"),
        ("reporting/worker_report.py", "known.is_listed or known.missed_beats >= BEATS_WITHOUT_START", "True"),
        (
            "reporting/worker_report.py",
            "self._is_whole = before is None or last.lost <= before.lost",
            "self._is_whole = True",
        ),
        ("reporting/worker_report.py", "self._unnamed_jobs = gathering.others", "self._unnamed_jobs = 0"),
        ("reporting/job_events.py", "if len(found) == 1}", "}"),
        (
            "monitoring/inability.py",
            "known.found is known.confirmed or now_s - known.since_s >= INABILITY_AFTER_S",
            "True",
        ),
        ("monitoring/inability.py", "            had_queues=before.had_queues,\n", ""),
        ("monitoring/inability.py", "or beat.is_stopping:", "or False:"),
        ("monitoring/inability.py", "    if not is_turning:\n        return None\n", ""),
        ("monitoring/inability.py", "known.had_queues and not beat.queues", "not beat.queues"),
        ("monitoring/inability.py", "slots_now < min(slots, known.slots_max)", "slots_now < slots"),
    ),
    *_of(
        AGENT,
        ("agent/test_suspended_starts.py", "agent/test_inability.py"),
        ("workers/reaper.py", "            life = lifecycle.over(life, now_s=now_s)\n", "            pass\n"),
        ("workers/starts/suspended_starts.py", "        self._until_s[kind] = now_s + SUSPENDED_START_PAUSE_S\n", ""),
        ("monitoring/inability.py", "            if each.pool not in able and", "            if"),
    ),
    *_of(
        CONTROL,
        ("control/test_tick_suspended.py", "control/http/test_pools.py", "control/http/test_incidents.py"),
        (
            "scheduler/ticker.py",
            "                **_turned(gathered, self._evaluation.suspended),\n",
            "",
        ),
        ("scheduler/evaluator.py", "are_suspended.get(row.pool, row.is_suspended)", "row.is_suspended"),
        ("scheduler/view_builder.py", "and sample.at_s >= oldest_s", ""),
        ("http/overview/pool_summary.py", "not (is_kept_from_jobs or (", "not (False or ("),
        (
            "http/overview/alerting.py",
            "        if kind in WITH_OWN_INCIDENT:\n            continue",
            "        if False:\n            continue",
        ),
        ("http/overview/alerting.py", "severity=condition.severity.value", "severity=PAGE"),
    ),
    *_of(
        COLLECT,
        ("collect/test_priority_lists.py", "collect/test_binding_members.py"),
        ("celery/priority_lists.py", "        if name in queues:\n            return None\n", ""),
        ("celery/priority_lists.py", " and separator in self._bindings.separators_of(queue)", ""),
        ("celery/priority_lists.py", "name.rpartition(separator)", "name.partition(separator)"),
        ("celery/priority_lists.py", "            self._passed_over.clear()\n", ""),
        ("celery/priority_lists.py", "                self._renew(queue)\n", ""),
        (
            "celery/celery_source.py",
            "islice(self._bindings.queues, known, None)) | found",
            "islice(self._bindings.queues, known, None))",
        ),
        ("celery/celery_source.py", "self._queue_empty_at_s.pop(queue, None)", "self._queue_empty_at_s.get(queue)"),
        (
            "celery/celery_source.py",
            "if was_whole and self._polled_at_s is not None:",
            "if self._polled_at_s is not None:",
        ),
        ("celery/celery_source.py", "count.waiting_jobs if is_counted else None", "count.waiting_jobs"),
        ("celery/celery_source.py", " or self._groups.version != version", ""),
        ("celery/queue_bindings.py", "                self._filters_types = False\n", "                pass\n"),
        ("celery/queue_bindings.py", "self.further_separators[queue] = [*known, separator]", "pass"),
    ),
    *_of(
        COLLECT,
        ("collect/test_unseen_ends.py", "collect/test_rq.py"),
        ("rq/unseen_ends.py", "                self._unseen[served] -= found\n", ""),
        ("rq/unseen_ends.py", "            if queue in served:\n", "            if True:\n"),
        ("rq/unseen_ends.py", "min(jobs - explained, self._unseen[served])", "self._unseen[served]"),
        ("rq/unseen_ends.py", "        if before is None:\n            return\n", "        before = before or {}\n"),
        ("rq/unseen_ends.py", "+= since if since > 0 else now[key]  #", "+= since  #"),
        ("rq/unseen_ends.py", "        self._unseen.clear()\n", "        pass\n"),
    ),
    *_of(
        COLLECT,
        ("collect/test_scheduled_jobs.py",),
        ("rq/scheduled_jobs.py", "jobs = max(jobs, min(count, later_jobs))", "jobs = min(count, later_jobs)"),
        ("rq/scheduled_jobs.py", "jobs = max(jobs, min(count, later_jobs))", "jobs = max(jobs, count)"),
        ("rq/scheduled_jobs.py", "overdue_jobs = min(overdue, scheduled_jobs)", "overdue_jobs = overdue"),
        ("rq/scheduled_jobs.py", "min(at_s, *first_due_s.values()) if", "min(first_due_s.values()) if"),
    ),
    *_of(
        COLLECT,
        ("collect/test_delayed_delivery.py",),
        ("celery/delayed_delivery.py", "_Point(each.at_s, min(each.entered, entered)) for", "each for"),
        (
            "celery/delayed_delivery.py",
            "max(points[max(0, index - 1)].at_s, points[index].at_s - MASKED_S)",
            "points[index].at_s",
        ),
        (
            "celery/delayed_delivery.py",
            "jobs=jobs - taken, due_in_s=waits_s)",
            "jobs=jobs - taken, due_in_s=2 * waits_s)",
        ),
        ("celery/delayed_delivery.py", "= [_Point(at_s, 0.0), ", "= [_Point(at_s - waits_s, 0.0), "),
    ),
    *_of(COLLECT, ("collect/test_rq_given_up.py",), ("rq/stuck_jobs.py", "since_s > STUCK_AFTER_S", "since_s > 0.0")),
    *_of(
        AGENT,
        ("agent/test_worker_reports.py",),
        ("reporting/worker_report.py", "end is not None and job.started_at_s <= end.started_at_s:", "end is not None:"),
        (
            "reporting/worker_report.py",
            "if key in gathering.ended or end.at_s >= last.at_s}",
            "if key in gathering.ended}",
        ),
        ("reporting/worker_report.py", " if key in gathering.ended or end.at_s >= last.at_s}", "}"),
        ("reporting/worker_report.py", "self._ended_jobs += not said.is_cut", "self._ended_jobs += 1"),
        ("reporting/worker_report.py", "self._nameless_jobs = last.unnamed", "self._nameless_jobs = 0"),
        ("reporting/worker_report.py", "        elif known.begun > 1:\n            known.begun -= 1\n", ""),
    ),
    *_of(
        AGENT,
        ("agent/test_done_jobs.py", "agent/test_recycling.py", "agent/test_backoff.py"),
        ("workers/ends/done_jobs.py", " and not each.is_cut for", " for"),
        ("workers/ends/done_jobs.py", " and each.started_at_s > started_after_s and", " and"),
        ("workers/ends/done_jobs.py", "and activity.ended_jobs > worker.ended_jobs:", ":"),
        ("policy/recycling.py", "        self._have_worked &= {record.worker_id for record, _ in workers}\n", ""),
        ("policy/recycling.py", " if activity.is_busy is False else RECYCLING_FRESH_UNKNOWN_S", ""),
        ("workers/crash_backoff.py", " and not (has_done_jobs and known.failures > 1)", ""),
    ),
    *_of(
        CONTROL,
        ("control/test_host_events.py",),
        (
            "ingest/host_events.py",
            "kept = tuple(each for each in batch.events if each.queue in allowed)",
            "kept = batch.events",
        ),
        (
            "ingest/host_events.py",
            ' and not batch.producer.startswith(f"{own_name}-")',
            " and not batch.producer.startswith(own_name)",
        ),
        (
            "ingest/host_events.py",
            "if batch.samples or batch.activities or batch.counts or batch.polls:",
            "if batch.samples:",
        ),
        ("ingest/host_events.py", "if caller.role is Role.INGEST and batch.producer.startswith(AGENT):", "if False:"),
        ("ingest/host_events.py", "if named <= known.names else HOST_QUEUES_REREAD_S", ""),
    ),
)
