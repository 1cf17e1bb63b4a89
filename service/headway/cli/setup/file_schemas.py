"""`headway schema`: JSON Schemas of profiles.yaml and host.toml, for editors that complete and check while one types.

Neither is written twice: that of a profile is the API's, and those of host.toml and of connections come from the
annotations by which they are read.
"""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from headway.agent.config.host_file import HostFile, TemplateTable
from headway.agent.config.host_file_values import TEXTS_SCHEMA
from headway.cli.argparse_base import Arguments
from headway.cli.terminal.printing import say_json
from headway.connections import Connection
from headway.control.http.schemas.group_bodies import GroupBody
from headway.control.http.schemas.profile_bodies import ProfileBody
from headway.scaling.keys import Form, Range, Schema, key_of, parts_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def profiles_schema() -> Schema:
    """Of profiles.yaml."""
    profile = ProfileBody.model_json_schema()
    definitions = profile.pop("$defs")
    group = {**GroupBody.model_json_schema(), "oneOf": [{"required": ["workers_max"]}, {"required": ["slots_max"]}]}
    parts = {
        "brokers": _named({"anyOf": [{"type": "string", "pattern": "://"}, schema_of(Connection, left_out=("name",))]}),
        "exclude": {**TEXTS_SCHEMA, "description": "Patterns of queues that no pool may serve, as `redis/test-*`."},
        "groups": _named(group),
        "pools": _named(profile),
        "sla_defaults": {
            **profile,
            "required": ["template"],
            "description": "The profile of which a pool is made for each queue that no pool names.",
        },
    }
    maybe = {key: {"anyOf": [part, {"type": "null"}]} for key, part in parts.items()}
    return {"$schema": DRAFT, "title": "profiles.yaml of Headway", **_table(maybe), "$defs": definitions}


def host_schema() -> Schema:
    """Of host.toml."""
    templates = {**_named(schema_of(TemplateTable)), "minProperties": 1}
    top = _table({"host": schema_of(HostFile, left_out=("templates",)), "templates": templates})
    return {"$schema": DRAFT, "title": "host.toml of Headway", **top, "required": ["templates"]}


def schema_of(kind: type[Any], *, left_out: Collection[str] = ()) -> Schema:
    """Of a table with the fields of the dataclass ``kind`` as keys, by their annotations."""
    keys = [item for item in fields(kind) if item.name not in left_out]
    required = [key_of(item) for item in keys if item.default is MISSING and item.default_factory is MISSING]
    table = _table({key_of(item): _field(item) for item in keys})
    return {**table, "required": required} if required else table


SCHEMAS = {"profiles": profiles_schema, "host": host_schema}
"""What the file is called in `headway schema` -> its schema."""


def _field(item: Field[Any]) -> Schema:
    kind, rules, _ = parts_of(item.type)
    if is_dataclass(kind):
        return schema_of(kind)  # type: ignore[arg-type]
    form = next((rule for rule in rules if isinstance(rule, Form)), None)
    if form is not None:
        schema = dict(form.schema)
    else:
        is_word = issubclass(kind, StrEnum)
        schema = {"enum": [str(each) for each in kind]} if is_word else {"type": TYPES[kind]}
    for rule in rules if form is None else ():
        schema |= _bounds(rule)
    is_number = isinstance(item.default, int | float) and schema.get("type") != "string"
    return {**schema, "default": item.default} if is_number else schema


def _bounds(rule: Range) -> Schema:
    low = "exclusiveMinimum" if rule.excluded in {"low", "both"} else "minimum"
    high = "exclusiveMaximum" if rule.excluded in {"high", "both"} else "maximum"
    return {low: rule.low, high: rule.high}


def _table(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _named(part: Schema) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": part}


def main(words: Sequence[str]) -> int:
    """Run the command. Returns the exit status."""
    parser = Arguments(prog="headway schema", description="Print the JSON Schema of a file, for your editor.")
    parser.add_argument("file", choices=SCHEMAS, help="profiles: profiles.yaml; host: host.toml")
    say_json(SCHEMAS[parser.parse_args(words[1:]).file]())
    return 0


if __name__ == "__main__":  # what `make api` calls
    for name, schema in SCHEMAS.items():
        (Path(sys.argv[1]) / f"{name}.schema.json").write_text(json.dumps(schema(), indent=2) + "\n")
