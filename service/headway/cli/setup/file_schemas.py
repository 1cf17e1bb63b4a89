"""`headway schema`: JSON Schemas of profiles.yaml and host.toml, for editors that complete and check while one types.

Neither is written twice: that of a profile is the API's, and that of host.toml is what its own reader asks for.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.agent.config.host_file import host_file_of
from headway.agent.config.toml_reader import NUMBER_MAX, TOML_NAME_CHARS_MAX, TomlTable
from headway.cli.argparse_base import Arguments
from headway.cli.terminal.printing import say_json
from headway.connection_tables import connection_schema
from headway.control.http.schemas.profile_bodies import ProfileBody

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SIZE: Schema = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9.]+ *[kKmMgGtT]?i?[bB]$"}]
}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": TOML_NAME_CHARS_MAX}
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}


def profiles_schema() -> Schema:
    """Of profiles.yaml."""
    profile = ProfileBody.model_json_schema()
    definitions = profile.pop("$defs")
    parts = {
        "brokers": _named(connection_schema()),
        "exclude": {**TEXTS, "description": "Patterns of queues that no pool may serve, as `redis/test-*`."},
        "pools": _named(profile),
    }
    maybe = {key: {"anyOf": [part, {"type": "null"}]} for key, part in parts.items()}
    return {"$schema": DRAFT, "title": "profiles.yaml of Headway", **_table(maybe), "$defs": definitions}


def host_schema() -> Schema:
    """Of host.toml."""
    tables: dict[str, _Described] = {}

    def described(_: Mapping[str, Any], name: str, breaches: list[str]) -> TomlTable:
        tables[name] = _Described(name, breaches)
        return tables[name]

    host_file_of({}, folder=Path(), breaches=[], table=described)
    top, host, template = (tables[name].schema for name in ("the file", "[host]", "template 'NAME'"))
    top["properties"] = {"host": host, "templates": {**_named(template), "minProperties": 1}}
    return {"$schema": DRAFT, "title": "host.toml of Headway", **top, "required": ["templates"]}


SCHEMAS = {"profiles": profiles_schema, "host": host_schema}
"""What the file is called in `headway schema` -> its schema."""


def _table(properties: Mapping[str, Any]) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _named(part: Schema) -> Schema:
    return {"type": "object", "additionalProperties": part}


class _Described(TomlTable):
    """A table that has nothing, and notes what it is asked for."""

    def __init__(self, name: str, breaches: list[str]) -> None:
        super().__init__({}, name, breaches)
        self.schema: Schema = _table({})

    def _put(self, key: str, schema: Schema, **default: Any) -> None:
        self.schema["properties"][key] = {**schema, **default}

    def tables(self, key: str) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002 - there is one such key
        return {"NAME": {}}

    def inner(self, key: str) -> TomlTable:
        found = _Described(key, self.breaches)
        self.schema["properties"][key] = found.schema
        return found

    def text(self, key: str) -> str | None:
        self._put(key, {"type": "string", "minLength": 1})
        return super().text(key)

    def words(self, key: str, *, is_needed: bool = False) -> tuple[str, ...]:
        self._put(key, {**TEXTS, "minItems": 1} if is_needed else TEXTS)
        if is_needed:
            self.schema["required"] = [*self.schema.get("required", []), key]
        return super().words(key, is_needed=is_needed)

    def choice_if_any(self, key: str, choices: Iterable[str]) -> str | None:
        self._put(key, {"enum": [str(each) for each in choices]})
        return super().choice_if_any(key, choices)

    def number(self, key: str, *, default: float, most: float = NUMBER_MAX) -> float:
        self._put(key, {"type": "number", "minimum": 0, "maximum": most}, default=default)
        return super().number(key, default=default, most=most)

    def number_if_any(self, key: str, *, most: float = NUMBER_MAX, is_zero_allowed: bool = False) -> float | None:
        least = "minimum" if is_zero_allowed else "exclusiveMinimum"
        self._put(key, {"type": "number", least: 0, "maximum": most})
        return super().number_if_any(key, most=most, is_zero_allowed=is_zero_allowed)

    def flag(self, key: str, *, default: bool) -> bool:
        self._put(key, {"type": "boolean"}, default=default)
        return super().flag(key, default=default)

    def whole(self, key: str, *, default: int, least: int, most: int) -> int:
        self._put(key, {"type": "integer", "minimum": least, "maximum": most}, default=default)
        return super().whole(key, default=default, least=least, most=most)

    def whole_if_any(self, key: str, *, least: int) -> int | None:
        self._put(key, {"type": "integer", "minimum": least, "maximum": int(NUMBER_MAX)})
        return super().whole_if_any(key, least=least)

    def memory_bytes(self, key: str, *, default: int) -> int:
        self._put(key, SIZE, default=default)
        return super().memory_bytes(key, default=default)

    def signal(self, key: str, *, default: int) -> int:
        self._put(key, {"type": "string", "pattern": "^[A-Za-z0-9+-]+$"})
        return super().signal(key, default=default)

    def environment(self, key: str) -> Mapping[str, str]:
        self._put(key, {**_named({"type": "string"}), "propertyNames": {"pattern": "^[^=]+$"}})
        return super().environment(key)

    def labels(self, key: str) -> Mapping[str, str]:
        self._put(key, {**_named(NAME), "propertyNames": NAME})
        return super().labels(key)


def main(words: Sequence[str]) -> int:
    """Run the command. Returns the exit status."""
    parser = Arguments(prog="headway schema", description="Print the JSON Schema of a file, for your editor.")
    parser.add_argument("file", choices=SCHEMAS, help="profiles: profiles.yaml; host: host.toml")
    say_json(SCHEMAS[parser.parse_args(words[1:]).file]())
    return 0


if __name__ == "__main__":  # what `make api` calls
    for name, schema in SCHEMAS.items():
        (Path(sys.argv[1]) / f"{name}.schema.json").write_text(json.dumps(schema(), indent=2) + "\n")
