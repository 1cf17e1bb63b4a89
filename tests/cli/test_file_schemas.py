"""The JSON Schemas of profiles.yaml and host.toml take what Headway takes, and refuse what it refuses."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from headway.__main__ import main
from headway.agent.config.host_file import host_file_of
from headway.agent.config.library_presets import STARTERS, host_text
from headway.cli.profiles_file import load_profiles_file, parsed
from headway.cli.setup.file_schemas import SCHEMAS, host_schema, profiles_schema
from headway.errors import Invalid
from headway.scaling.profile import Profile, profile_to_mapping
from support.tree import ROOT

PAGES = "\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*/*.md")))
POOL = "pools:\n  mail: {queues: [redis/mail], template: rq"
TEMPLATE = "[templates.rq]\nargv = ['true']\n"

PROFILES = jsonschema_rs.validator_for(profiles_schema())
HOST = jsonschema_rs.validator_for(host_schema())


def blocks(language: str, of: str) -> list[str]:
    """What pages show of a kind of file."""
    return [each for each in re.findall(rf"```{language}\n(.*?)```", PAGES, flags=re.DOTALL) if of in each]


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], Any]:
    def value(text: str) -> Any:
        (tmp_path / "profiles.yaml").write_text(text)
        return parsed(tmp_path / "profiles.yaml")

    return value


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_committed_schema_is_what_the_command_prints(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    committed = json.loads((ROOT / f"docs/reference/{name}.schema.json").read_text())
    assert json.loads(capsys.readouterr().out) == committed, (
        "run: .venv/bin/python -m headway.cli.setup.file_schemas docs/reference"
    )
    jsonschema_rs.meta.validate(committed)


def test_every_file_of_the_pages_fits(read: Callable[[str], Any]) -> None:
    shown = [each for each in blocks("yaml", "pools:") if "{{" not in each]
    assert len(shown) > 5
    for text in shown:
        assert not [str(error) for error in PROFILES.iter_errors(read(text))], text
    templates = blocks("toml", "[templates.")
    assert len(templates) > 2
    for text in [*templates, host_text(STARTERS)]:
        assert not [str(error) for error in HOST.iter_errors(tomllib.loads(text))], text


def test_every_key_of_a_profile_fits() -> None:
    whole = profile_to_mapping(Profile(pool="mail", queues=("redis/mail",), template="rq"))
    schema = profiles_schema()["properties"]["pools"]["anyOf"][0]["additionalProperties"]
    assert schema["properties"].keys() == whole.keys()
    assert PROFILES.is_valid({"pools": {"mail": whole}})


@pytest.mark.parametrize(
    "text",
    [
        "pool: {}",
        f"{POOL}, workers: 3}}",
        f"{POOL}, workers_min: -1}}",
        f"{POOL}, workers_max: many}}",
        f"{POOL}, objective: {{target: 3}}}}",
        f"{POOL}, objective: {{percentile: 100}}}}",
        f"{POOL}, mode: acts}}",
        f"{POOL}, preset: quick}}",
        "pools:\n  mail: {queues: [redis/mail]}",
        "pools:\n  mail: {queues: [], template: rq}",
        "brokers: {redis: 3}",
        "brokers: {redis: {urls: 'redis://h'}}",
        "brokers: {redis: {url: 'redis://h', every_s: 60}}",
    ],
)
def test_a_mistake_in_profiles_is_one_to_both(read: Callable[[str], Any], tmp_path: Path, text: str) -> None:
    assert not PROFILES.is_valid(read(text))
    with pytest.raises(Invalid):
        load_profiles_file(tmp_path / "profiles.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "[host]\n",
        "[hosts]\n" + TEMPLATE,
        "[host]\ngpus = -1\n" + TEMPLATE,
        "[host]\nreserve_memory = 'much'\n" + TEMPLATE,
        "[host.labels]\nzone = ''\n" + TEMPLATE,
        "[templates.rq]\nslots = 2\n",
        "[templates.rq]\nargv = []\n",
        TEMPLATE + "slots = 0\n",
        TEMPLATE + "niceness = 20\n",
        TEMPLATE + "stop_signals = 'TERM'\n",
        TEMPLATE + "environment = {A = 1}\n",
        TEMPLATE + "resources = {cpu = 1}\n",
        TEMPLATE + "log = {files = -1}\n",
    ],
)
def test_a_mistake_in_a_host_file_is_one_to_both(tmp_path: Path, text: str) -> None:
    document, breaches = tomllib.loads(text), []
    assert not HOST.is_valid(document)
    host_file_of(document, folder=tmp_path, breaches=breaches)
    assert breaches
