"""What breaks callers of the HTTP API between two versions of its description.

    .venv/bin/python tools/api_breaks.py OLD.json NEW.json      # prints each, and ends with 1 where there is one

Callers break where an operation, a parameter or a key of an answer goes, where a request must have more than before or
may have less, and where an answer may be of a kind that it was not, as null. New operations and keys that may be left
out break nobody. New words of an answer's list, as a state, are not counted (docs/decisions/0028).
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

METHODS = ("get", "put", "post", "delete", "patch")
# Keyword -> whether a greater value takes less.
BOUNDS = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems"), True),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems"), False),
}


class Comparison:
    """Two descriptions, and what of the first does not hold in the second."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self._old, self._new = old, new
        self._compared: set[tuple[str, str, bool]] = set()

    def breaks(self) -> Iterator[str]:
        """Each break as ``METHOD /path: what``."""
        for path, methods in self._old["paths"].items():
            for method in METHODS:
                if method in methods:
                    new = self._new["paths"].get(path, {}).get(method)
                    found = ["is gone"] if new is None else self._operation(methods[method], new)
                    yield from (f"{method.upper()} {path}: {each}" for each in found)

    def _operation(self, old: Schema, new: Schema) -> Iterator[str]:
        if old["operationId"] != new["operationId"]:
            yield f"is called {new['operationId']!r} and was {old['operationId']!r}"
        yield from self._parameters(old, new)
        yield from self._request_body(old, new)
        for status, answer in old["responses"].items():
            if not status.startswith("2"):
                continue
            if status not in new["responses"]:
                yield f"no longer answers {status}"
                continue
            kinds = new["responses"][status].get("content", {})
            for kind, content in answer.get("content", {}).items():
                if kind not in kinds:
                    yield f"no longer answers {kind} with {status}"
                else:
                    yield from self._schema(
                        content.get("schema", {}), kinds[kind].get("schema", {}), status, sent=False
                    )

    def _parameters(self, old: Schema, new: Schema) -> Iterator[str]:
        was, now = (
            {(each["in"], each["name"]): each for each in operation.get("parameters", [])} for operation in (old, new)
        )
        for key, parameter in was.items():
            if key not in now:
                yield f"no longer takes {key[1]!r} in {key[0]}"
            else:
                yield from self._schema(parameter.get("schema", {}), now[key].get("schema", {}), key[1], sent=True)
        for key, parameter in now.items():
            if parameter.get("required") and not was.get(key, {}).get("required"):
                yield f"{key[1]!r} must now be given"

    def _request_body(self, old: Schema, new: Schema) -> Iterator[str]:
        was, now = old.get("requestBody", {}), new.get("requestBody", {})
        if now.get("required") and not was.get("required"):
            yield "a body must now be given"
        for kind, content in was.get("content", {}).items():
            if kind not in now.get("content", {}):
                yield f"no longer takes a body as {kind}"
            else:
                yield from self._schema(content["schema"], now["content"][kind]["schema"], "body", sent=True)

    def _schema(self, old: Schema, new: Schema, at: str, *, sent: bool) -> Iterator[str]:
        """Breaks of one schema: of what callers send, or of what they are answered."""
        if "$ref" in old and "$ref" in new:
            key = (old["$ref"], new["$ref"], sent)
            if key in self._compared:  # reported where it was first met, and some hold themselves
                return
            self._compared.add(key)
        was, now = kinds_of(old, self._old), kinds_of(new, self._new)
        if sent:
            yield from (f"{at}: may no longer be {kind}" for kind in was if not holds(now, kind))
        else:
            yield from (f"{at}: may now be {kind}" for kind in now if not holds(was, kind))
        for kind in was.keys() & now.keys():
            yield from self._same_kind(was[kind], now[kind], at, sent=sent)

    def _same_kind(self, old: Schema, new: Schema, at: str, *, sent: bool) -> Iterator[str]:
        was, now = set(old.get("required", ())), set(new.get("required", ()))
        keys = new.get("properties", {})
        if sent:
            yield from (f"{at}.{key}: must now be given" for key in sorted(now - was))
            yield from _narrower(old, new, at)
        for key, schema in old.get("properties", {}).items():
            if key not in keys:
                yield f"{at}.{key}: is gone"
                continue
            if not sent and key in was - now:
                yield f"{at}.{key}: may now be absent"
            yield from self._schema(schema, keys[key], f"{at}.{key}", sent=sent)
        for word in ("items", "additionalProperties"):
            if isinstance(old.get(word), dict) and isinstance(new.get(word), dict):
                yield from self._schema(old[word], new[word], f"{at}[]", sent=sent)


def kinds_of(schema: Schema, description: Schema) -> dict[str, Schema]:
    """Each kind of value that a schema has, as ``string``, with its part of it; ``any`` has all."""
    if "$ref" in schema:
        return kinds_of(description["components"]["schemas"][schema["$ref"].rpartition("/")[2]], description)
    parts = schema.get("anyOf") or schema.get("oneOf")
    if parts:
        return {kind: part for each in parts for kind, part in kinds_of(each, description).items()}
    return {schema.get("type", "string" if "const" in schema or "enum" in schema else "any"): schema}


def holds(kinds: dict[str, Schema], kind: str) -> bool:
    """Whether a value of ``kind`` is one of ``kinds``."""
    return kind in kinds or "any" in kinds or (kind == "integer" and "number" in kinds)


def _narrower(old: Schema, new: Schema, at: str) -> Iterator[str]:
    for word, greater_takes_less in BOUNDS.items():
        was, now = old.get(word), new.get(word)
        if now is not None and (was is None or (now > was if greater_takes_less else now < was)):
            yield f"{at}: {word} is now {now}"
    if "pattern" in new and new["pattern"] != old.get("pattern"):
        yield f"{at}: pattern is now {new['pattern']}"
    was_words, now_words = (
        schema.get("enum", [schema["const"]] if "const" in schema else None) for schema in (old, new)
    )
    if now_words is not None:
        lost = ["any word"] if was_words is None else [str(word) for word in was_words if word not in now_words]
        yield from (f"{at}: no longer takes {word}" for word in lost)


def main(arguments: list[str]) -> int:
    """Print the breaks between two files."""
    old, new = (json.loads(Path(file).read_text()) for file in arguments)
    found = list(Comparison(old, new).breaks())
    print("\n".join(found) or "nothing breaks")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
