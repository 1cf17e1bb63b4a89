"""`headway diff`, `validate`, `export`, and `apply` with `--dry-run` and `--prune`, against a real control plane."""

import json
import sys
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.__main__ import main
from headway.cli.profiles_file import load_profiles_file
from headway.scaling.measure import sketch_index
from headway.scaling.model import Objective
from headway.scaling.profile import Profile, profile_from_mapping
from headway.scaling.profile_changes import changes, shortest
from headway.scaling.profile_keys.presets import PRESETS
from headway.scaling.profile_keys.rules import is_name
from support.seed import Seed
from support.served import Served, profiles_file

MAIL = Profile(pool="mail", queues=("redis/mail",), template="rq")
NEWS = Profile(pool="news", queues=("redis/news",), template="rq")
TEXT = "pools:\n  mail: {queues: [redis/mail], template: rq, workers_max: 30, objective: {target_s: 5}}\n"


@pytest.fixture
def two(seed: Seed) -> None:
    seed.host("a")
    for each in (MAIL, NEWS):
        seed.profile(each)


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("flag", [[], ["-f"]])
def test_diff_shows_each_key_that_differs_and_changes_nothing(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: list[str]
) -> None:
    file = profiles_file(tmp_path, TEXT)
    assert main(["diff", *flag, file]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        f"would be updated: mail at {served.url}",
        "  objective.target_s: 10.0 → 5.0",
        "  workers_max: 20 → 30",
        *(line for line in shown if line.startswith("  note: ")),
        f"only at {served.url}: news; `headway apply --prune` deletes it",
        "1 of 1 profile would change",
    ]
    assert main(["export"]) == 0
    assert load(capsys.readouterr().out, tmp_path) == [MAIL, NEWS]
    assert main(["apply", file]) == 0
    assert main(["diff", file]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 of 1 profile would change"


@pytest.mark.usefixtures("two")
def test_a_dry_run_answers_as_apply_would_and_leaves_no_trace(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TEXT + "  bulk: {queues: [redis/bulk], template: rq}\n"
    assert main(["apply", "--dry-run", "--prune", "-f", profiles_file(tmp_path, text)]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  ")]
    assert shown == [
        f"would be updated: mail at {served.url}",
        f"would be created: bulk at {served.url}",
        f"would be deleted: news at {served.url}",
    ]
    assert main(["export"]) == 0
    assert load(capsys.readouterr().out, tmp_path) == [MAIL, NEWS]
    assert main(["audit", "--json"]) == 0
    assert "bulk" not in capsys.readouterr().out


@pytest.mark.usefixtures("served", "two")
def test_a_dry_run_refuses_what_apply_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = profiles_file(tmp_path, "pools:\n  bulk: {queues: [redis/news], template: rq}\n")
    for command in (["diff"], ["apply", "--dry-run"]):
        assert main([*command, taken]) == 2
        assert "queue 'redis/news' belongs to pool 'news'" in capsys.readouterr().err


@pytest.mark.usefixtures("two")
def test_a_queue_that_moves_between_pools_of_the_files_is_no_conflict(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "pools:\n  bulk: {queues: [redis/news], template: rq}\n  news: {queues: [redis/other], template: rq}\n"
        "  mail: {queues: [redis/mail], template: rq}\n"
    )
    assert main(["diff", profiles_file(tmp_path, text)]) == 1
    shown = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  note")]
    assert shown == [
        f"would be created: bulk at {served.url}",
        f"would be updated: news at {served.url}",
        '  queues: ["redis/news"] → ["redis/other"]',
        "2 of 3 profiles would change",
    ]


@pytest.mark.usefixtures("two")
def test_prune_asks_and_deletes_what_no_file_names(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = profiles_file(tmp_path, TEXT)
    assert main(["apply", "--prune", file]) == 2  # nobody is there to answer
    said = capsys.readouterr()
    assert f"delete news at {served.url}?" in said.err
    assert "--yes" in said.err
    assert not said.out
    assert main(["apply", "--prune", "--yes", file]) == 0
    assert f"deleted news at {served.url}" in capsys.readouterr().out
    assert main(["apply", "--prune", file]) == 0  # nothing is left to ask


@pytest.mark.usefixtures("served", "two")
def test_prune_with_a_file_without_pools_deletes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "--prune", "--yes", profiles_file(tmp_path, "exclude: [redis/test-*]\n")]) == 2
    assert "nothing was applied" in capsys.readouterr().err
    assert main(["export"]) == 0
    assert load(capsys.readouterr().out, tmp_path) == [MAIL, NEWS]


def test_validate_finds_every_mistake_without_a_control_plane(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_URL", "http://127.0.0.1:1")
    file = profiles_file(
        tmp_path,
        "pools:\n  mail: {queues: [redis/mail], template: rq, strategy: hybird}\n"
        "  news: {queues: [redis/news], template: rq, budget_time_zone: Mars/Base, budget_per_day: 3,\n"
        "    cost_per_worker_hour: 1}\n",
    )
    assert main(["validate", file]) == 2
    said = capsys.readouterr().err
    assert "did you mean 'hybrid'" in said
    assert "Mars/Base" in said
    assert main(["validate", "-f", profiles_file(tmp_path, TEXT)]) == 0
    assert "1 profile, no mistake" in capsys.readouterr().out


def test_validate_takes_the_file_that_up_takes_where_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    profiles_file(tmp_path, TEXT)
    assert main(["validate"]) == 0
    assert capsys.readouterr().out == "profiles.yaml: 1 profile, no mistake\n"


def test_validate_names_a_template_that_the_host_file_beside_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    profiles_file(tmp_path, TEXT)
    (tmp_path / "host.toml").write_text('[templates.rp]\nargv = ["/bin/sh", "-c", "exec true"]\n')
    assert main(["validate"]) == 0
    assert capsys.readouterr().out == (
        "profiles.yaml: 1 profile, no mistake\n"
        "warning: profile 'mail': no template 'rq' in host.toml: no worker of it can start on this host\n"
    )


def test_validate_names_every_pool_whose_template_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    profiles_file(tmp_path, f"{TEXT}  news: {{queues: [redis/news], template: rq}}\n")
    (tmp_path / "host.toml").write_text('[templates.rp]\nargv = ["/bin/sh", "-c", "exec true"]\n')
    assert main(["validate"]) == 0
    assert "profiles 'mail', 'news': no template 'rq' in host.toml: no worker of them can" in capsys.readouterr().out


@pytest.mark.parametrize("is_polled", [True, False])
def test_validate_names_a_queue_that_the_control_plane_has_never_found(
    served: Served, seed: Seed, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_polled: bool
) -> None:
    """Only where its collectors poll the broker: else the queue may well be there."""
    seed.sample("redis/mail", at_s=time.time())
    seed.sample("redis/images", at_s=time.time())
    if is_polled:
        seed.execute("insert into collectors (connection, producer, began_at) values ('redis', 'collect-a', now())")
    text = f"{TEXT}  pictures: {{queues: [redis/image, rabbit/new], template: rq}}\n"
    assert main(["validate", profiles_file(tmp_path, text)]) == 0
    warning = (
        f"warning: profile 'pictures': the control plane at {served.url} has never found queue 'redis/image' in its "
        "broker: it has had no job yet, or is misspelt; did you mean 'redis/images'?"
    )
    assert [line for line in capsys.readouterr().out.splitlines() if "never found" in line] == [warning] * is_polled


def test_validate_names_objectives_that_are_no_edge_of_the_sketches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objectives = "{redis/a: {target_s: 4000}, redis/b: {target_s: 900}}"
    text = f"""
pools:
  two: {{queues: [redis/a, redis/b], template: rq, objective: {{target_s: 7}}, member_objectives: {objectives}}}
"""
    assert main(["validate", profiles_file(tmp_path, text)]) == 0
    printed = capsys.readouterr().out
    assert "pool 'two': a wait within 2 % of the objective's 7 s may count as late or not" in printed
    assert "5 s and 10 s are exact" in printed
    assert "queue 'redis/a': a wait within 2 % of the objective's 66.7 min" in printed
    assert "60 min is exact" in printed
    assert "queue 'redis/b'" not in printed


def test_validate_warns_of_a_percentile_that_was_meant_as_a_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "pools: {mail: {queues: [redis/mail], template: rq, objective: {percentile: 0.99}}}"
    assert main(["validate", profiles_file(tmp_path, text)]) == 0
    asked = "the objective's percentile=0.99 asks 0.99 % of the jobs to start in time"
    assert capsys.readouterr().out.splitlines()[1:] == [f"warning: pool 'mail': {asked}; did you mean 99?"]


def test_validate_warns_of_what_the_host_file_beside_cuts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = profiles_file(tmp_path, TEXT)
    program = tmp_path / "celery"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    host = Path(file).parent / "host.toml"
    table = f'argv = ["{program}", "worker", "--time-limit", "300"]\nreporter = "none"\n'
    host.write_text(f"[templates.rq]\n{table}[templates.other]\n{table}")
    assert main(["validate", file]) == 0
    cut = "Celery kills a task that runs for longer than 300 s, whether its worker stops or not (--time-limit)"
    assert capsys.readouterr().out.splitlines()[1:] == [f"warning: {host}: template rq: {cut}"]
    host.write_text("[templates.rq]\n")  # which is not what it was asked about
    assert main(["validate", file]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_validate_and_check_name_what_does_damage_in_a_template_that_a_person_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A template with -B had four beats, and each task was sent four times: no command said a word."""
    file = profiles_file(tmp_path, TEXT)
    host = Path(file).parent / "host.toml"
    celery = (
        f"{Path(sys.executable).with_name('celery')} -A shop worker -B -D -P solo --without-heartbeat --autoscale=4,1"
    )
    host.write_text(f'[templates.rq]\nargv = ["/bin/sh", "-c", "{celery}"]\n')
    assert main(["validate", file]) == 0
    validated = capsys.readouterr().out
    assert main(["agent", "check", "--offline", "--host-file", str(host), "--state-dir", str(tmp_path / "state")]) == 0
    checked = capsys.readouterr().out
    for option in ("--autoscale", "--beat", "--detach", "--pool solo", "--without-heartbeat"):
        assert f"warning: {host}: template rq: remove {option}: " in validated
        assert f"template rq: remove {option}: " in checked
    assert "template rq: `sh -c` may stay between" in validated


SHARED = """
pools:
  shop:
    queues: [redis/urgent, redis/bulk]
    template: shop
    objective: {target_s: 600}
    member_objectives: {redis/urgent: {target_s: 5}}
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('"urgent", "bulk"', None),
        ('"bulk", "urgent"', "from a later queue only while the earlier ones are empty"),
        ('"--dequeue-strategy", "round_robin", "urgent", "bulk"', "from the queues in turn"),
        (None, "from the queues in an unknown order"),  # no host.toml is there
    ],
)
def test_validate_names_a_queue_that_may_start_behind_one_with_a_longer_objective(
    words: str | None, said: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = profiles_file(tmp_path, SHARED)
    if words is not None:
        program = tmp_path / "rq"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        argv = f'["{program}", "worker", "--with-scheduler", {words}]'
        (Path(file).parent / "host.toml").write_text(f"[templates.shop]\nargv = {argv}\n")
    assert main(["validate", file]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if "shares its workers with redis/bulk" in line]
    assert len(notes) == (said is not None)
    assert all("redis/urgent, whose jobs are to start within 5 s" in each and str(said) in each for each in notes)


HELPED = """pools:
  default: {queues: [shop/default], template: default}
  images: {queues: [shop/images], helps: [shop/default, shop/bulk], template: images}
"""


def test_validate_names_a_queue_that_a_template_does_not_serve_and_its_pool_helps_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, program = profiles_file(tmp_path, HELPED), tmp_path / "rq"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    host = Path(file).parent / "host.toml"

    def said(*queues: str) -> list[str]:
        templates = {"default": ("default",), "images": queues}
        rows = (
            f"[templates.{name}]\nargv = {json.dumps([str(program), 'worker', '--with-scheduler', *named])}\n"
            for name, named in templates.items()
        )
        host.write_text("".join(rows))
        assert main(["validate", file]) == 0
        return [line for line in capsys.readouterr().out.splitlines() if "help" in line or "first" in line]

    unowned = "warning: profile 'images': helps names 'shop/bulk', which no pool here owns: its jobs have no objective"
    lacking = "its command line names images, bulk only: add default, which pool 'images' helps with"
    first = "note: pool 'images': its workers take jobs of shop/default first, which another pool owns"
    (of_both,) = said("images", "default", "bulk")
    assert of_both.startswith(unowned)
    assert said("images", "bulk") == [of_both, f"warning: {host}: template images: {lacking}"]
    assert said("default", "images", "bulk")[1].startswith(first)


def test_apply_notes_a_queue_that_a_pool_helps_with_and_no_pool_owns(
    served: Served, seed: Seed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.host("a")
    assert main(["apply", profiles_file(tmp_path, HELPED.replace("  default", "  standard"))]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if "helps" in line]
    assert len(notes) == 1
    assert "helps names 'shop/bulk', which no pool here owns" in notes[0]


@pytest.mark.parametrize("of", ["redis/mail", "redis/news"])
def test_apply_notes_a_deadline_that_is_shorter_than_the_jobs(
    served: Served, seed: Seed, tmp_path: Path, capsys: pytest.CaptureFixture[str], of: str
) -> None:
    """Of its own queues, and of those that it helps with."""
    seed.host("a")
    template = {"name": "rq", "content_hash": "1", "slots": 1, "job_limit_s": 30.0, "job_limit": "--timeout"}
    seed.execute_with("update hosts set templates = %s", json.dumps([template]))
    seed.profile(MAIL)
    now_s = time.time()
    sketch = json.dumps({sketch_index(90.0): 100})
    seed.bucket(of, at_s=now_s - 5, finished_jobs=100, service_sketch=sketch)
    assert main(["apply", profiles_file(tmp_path, TEXT.replace("rq, ", "rq, helps: [redis/news], "))]) == 0
    (note,) = [line for line in capsys.readouterr().out.splitlines() if "by itself" in line]
    assert note.startswith(
        "  note: the library of template rq cuts jobs by itself after 30 s (--timeout), and one job in"
    )


@pytest.mark.usefixtures("served", "two")
def test_export_takes_pools_that_exist(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["export", "news"]) == 0
    assert load(capsys.readouterr().out, tmp_path) == [NEWS]
    assert main(["export", "nwes"]) == 2
    assert "no profile 'nwes'" in capsys.readouterr().err


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("name", ["mail", "почта", "off", "18:00"])
def test_a_name_is_exported_as_the_same_name(
    seed: Seed, capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    profile = Profile(pool=name, queues=(f"redis/{name}",), template="rq")
    seed.profile(profile)
    assert main(["export"]) == 0
    text = capsys.readouterr().out
    assert all(map(str.isprintable, text.split("\n")))
    assert load(text, tmp_path) == [profile]


@given(
    preset=st.none() | st.sampled_from(sorted(PRESETS)),
    workers_max=st.integers(1, 500),
    target_s=st.floats(0.5, 3600),
    labels=st.dictionaries(st.text("abc", min_size=1), st.text(min_size=1, max_size=5).filter(is_name)),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_exported_makes_the_same_profile(
    tmp_path: Path, preset: str | None, workers_max: int, target_s: float, labels: dict[str, str]
) -> None:
    given = {"queues": ["redis/mail"], "template": "rq", "workers_min": 0, "workers_max": workers_max}
    given |= {"objective": {"target_s": target_s}, "placement": {"labels": labels}}
    profile = profile_from_mapping("mail", given | ({"preset": preset} if preset else {}))
    text = yaml.safe_dump({"pools": {"mail": shortest(profile)}}, sort_keys=False, allow_unicode=True)
    assert load(text, tmp_path) == [profile]


def test_keys_that_are_mappings_of_one_profile_only_are_shown() -> None:
    other = Profile(
        pool="mail", queues=MAIL.queues, template="rq", member_objectives={"redis/mail": Objective(target_s=3.0)}
    )
    assert [each.key for each in changes(MAIL, other)] == [
        f"member_objectives.redis/mail.{key}" for key in ("target_s", "percentile", "window_s")
    ]
    assert changes(other, other) == ()
    assert all(each.after is None for each in changes(other, MAIL))


def load(text: str, folder: Path) -> list[Profile]:
    """The profiles in the text of a file."""
    return list(load_profiles_file(Path(profiles_file(folder, text, "exported.yaml"))).profiles)
