from headway.agent.workers.crash_backoff import CRASH_BACKOFF_RESET_S, PAUSE, Backoff

MAIL, WEB = ("mail", "rq"), ("web", "rq")


def test_pauses_double_from_ten_seconds_to_five_minutes() -> None:
    backoff, now_s, pauses_s = Backoff({}), 0.0, []
    for _ in range(8):
        backoff = backoff.failed(MAIL, started_at_s=now_s, now_s=now_s + 1.0)
        pauses_s.append(backoff.until_s(MAIL) - now_s - 1.0)
        now_s = backoff.until_s(MAIL)
    assert pauses_s == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]


def test_days_of_failures_keep_the_longest_pause() -> None:
    """2.0 to the power of 1,024 is no float."""
    backoff, now_s = Backoff({}), 0.0
    for _ in range(1_100):
        backoff, before_s = backoff.failed(MAIL, started_at_s=now_s, now_s=now_s), now_s
        now_s = backoff.until_s(MAIL)
    assert now_s - before_s == 300.0


def test_workers_that_were_started_together_fail_once() -> None:
    backoff = Backoff({})
    for died_at_s in (1.0, 1.1, 9.0):
        backoff = backoff.failed(MAIL, started_at_s=0.0, now_s=died_at_s)
    assert backoff.until_s(MAIL) == 11.0


def test_nothing_of_the_kind_starts_during_its_pause_and_others_do() -> None:
    backoff = Backoff({}).failed(MAIL, started_at_s=0.0, now_s=1.0)
    assert backoff.holds(MAIL, now_s=10.9)
    assert not backoff.holds(MAIL, now_s=11.0)
    assert not backoff.holds(WEB, now_s=1.0)
    assert not backoff.holds(("mail", "other"), now_s=1.0)


def test_ten_good_minutes_make_up_for_what_was_before() -> None:
    backoff = Backoff({})
    for _ in range(5):
        since_s = backoff.until_s(MAIL) or 0.0
        backoff = backoff.failed(MAIL, started_at_s=since_s, now_s=since_s)
    until_s = backoff.until_s(MAIL)
    soon, later = until_s + CRASH_BACKOFF_RESET_S - 1.0, until_s + CRASH_BACKOFF_RESET_S
    assert backoff.failed(MAIL, started_at_s=until_s, now_s=soon).until_s(MAIL) - soon == 300.0
    assert backoff.failed(MAIL, started_at_s=until_s, now_s=later).until_s(MAIL) - later == 10.0


def in_a_long_pause() -> tuple[Backoff, float]:
    """After five failures, and when the last one was."""
    backoff, now_s = Backoff({}), 0.0
    for _ in range(5):
        now_s = backoff.until_s(MAIL) or 0.0
        backoff = backoff.failed(MAIL, started_at_s=now_s, now_s=now_s)
    return backoff, now_s


def test_one_worker_is_tried_at_the_shortest_interval_however_long_the_pause() -> None:
    backoff, failed_at_s = in_a_long_pause()
    assert backoff.until_s(MAIL) == failed_at_s + 160.0
    assert backoff.pauses[MAIL].tries_at_s == failed_at_s + PAUSE.shortest_s
    tried_s = failed_at_s + 12.0
    backoff = backoff.tried(MAIL, now_s=tried_s)
    assert backoff.pauses[MAIL].tries_at_s == tried_s + PAUSE.shortest_s
    backoff = backoff.failed(MAIL, started_at_s=tried_s, now_s=tried_s + 5.0)
    assert backoff.pauses[MAIL].tries_at_s == tried_s + 5.0 + PAUSE.shortest_s
    assert backoff.until_s(MAIL) == failed_at_s + 160.0, "it makes the pause of the others no longer"
    assert WEB not in backoff.pauses


def test_a_worker_that_stays_ends_the_pause_of_the_others() -> None:
    backoff, failed_at_s = in_a_long_pause()
    assert backoff.survived(MAIL, started_at_s=failed_at_s - 60.0, now_s=failed_at_s + 20.0) is backoff
    well = backoff.survived(MAIL, started_at_s=failed_at_s + 10.0, now_s=failed_at_s + 20.0)
    assert not well.holds(MAIL, now_s=failed_at_s + 20.0)
    again = well.failed(MAIL, started_at_s=failed_at_s + 20.0, now_s=failed_at_s + 21.0)
    assert again.until_s(MAIL) == failed_at_s + 21.0 + 300.0, "what came before still counts"


def test_after_a_job_that_was_done_since_the_last_failure_the_pause_is_the_shortest() -> None:
    backoff, failed_at_s = in_a_long_pause()
    tried_s = failed_at_s + 10.0
    before, since = (
        backoff.failed(MAIL, started_at_s=tried_s, now_s=tried_s + 5.0, done_at_s=at_s)
        for at_s in (failed_at_s - 1.0, tried_s + 4.0)
    )
    assert before.until_s(MAIL) == backoff.until_s(MAIL)
    assert since.until_s(MAIL) == tried_s + 5.0 + PAUSE.shortest_s
