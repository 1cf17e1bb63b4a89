import re
from dataclasses import fields
from pathlib import Path

from headway.simulate import Observation

PAGE = (Path(__file__).parents[2] / "docs/how-to/drive-the-core.md").read_text()


def test_the_example_runs_as_printed() -> None:
    for example in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(example, "drive-the-core.md", "exec"), {})


def test_every_field_of_an_observation_is_explained() -> None:
    described = {
        name
        for line in PAGE.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert described == {item.name for item in fields(Observation)}
