"""What a lab reads out of what an agent says."""

from lab.hosts import gave_up

BROKER = "10.213.2.3:6379"
SAID = "failed pool=letters template=letters again_in_s=10: pid=20363 exit=1 after_s=3.5 said="


def test_a_worker_that_did_not_reach_its_broker_gave_up() -> None:
    words = f"{SAID}'ERROR:root:Error 113 connecting to {BROKER}. No route to host.'\n"
    assert gave_up(words * 2, broker=BROKER) == {"letters": 2}


def test_a_worker_that_failed_for_another_reason_did_not_give_up() -> None:
    words = f"{SAID}'Segmentation fault'\n{SAID}'Error 111 connecting to 10.213.2.33:6379.'\n"
    assert not gave_up(words, broker=BROKER)


def test_a_worker_that_ended_as_it_was_asked_to_did_not_give_up() -> None:
    words = f"ended pool=letters template=letters pid=7 exit=0 after_s=70.9\nError 113 connecting to {BROKER}."
    assert not gave_up(words, broker=BROKER)
