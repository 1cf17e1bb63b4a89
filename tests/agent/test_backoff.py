from headway.agent.workers.crash_backoff import CRASH_BACKOFF_RESET_S, Backoff

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
