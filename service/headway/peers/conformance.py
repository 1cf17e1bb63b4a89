"""`headway conformance`: what our formulas answer beside what other autoscalers' code was recorded to answer."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.cli.argparse_base import Arguments
from headway.cli.terminal.printing import say
from headway.errors import Invalid
from headway.peers.replays import REPLAYS, Replay

TOLERANCE = 1e-9
# The recorded fits sum squares that are not centred: ours, which are, differ in the last digits.
TOLERANCES = {"linear_regression": 1e-6, "arrival_rate_forecast": 1e-6, "hybrid_strategy": 1e-6}
CASES_NAMED_MAX = 5  # cases named, a file; the others are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One recorded call."""

    case_id: str
    calculator: str
    tags: tuple[str, ...]
    inputs: Mapping[str, Any]
    expected: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a case: ``None`` where ours agrees, else in what it differs."""

    case: RecordedCall
    difference: str | None

    @property
    def is_counted(self) -> bool:
        """Whether the recording is how it ought to be: defects of others are shown only."""
        return "peer_defect" not in self.case.tags


def main(words: list[str]) -> int:
    """Replay the files that ``words`` name. Returns the exit status: 1 when a counted case differs."""
    parser = Arguments(prog="headway conformance", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="recorded cases, one JSON object a line")
    files = {path: read_cases(path) for path in parser.parse_args(words[1:]).files}
    counted: list[Result] = []
    for path, cases in files.items():
        results = [replayed(case, REPLAYS[case.calculator]) for case in cases if case.calculator in REPLAYS]
        counted += [result for result in results if result.is_counted]
        for line in summary(path.name, cases, results):
            say(line)
    failed = len(_differing(counted))
    say(f"{len(counted) - failed} passed, {failed} failed")
    return 1 if failed else 0


def read_cases(path: Path) -> list[RecordedCall]:
    """The cases of a file.

    Raises:
        Invalid: it cannot be read, or a line of it is no case.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Invalid(f"cannot read {path}: {reason}") from error
    return [_case(line, where=f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _case(line: str, *, where: str) -> RecordedCall:
    try:
        body = json.loads(line)
    except ValueError as error:
        raise Invalid(f"{where}: not JSON: {error}") from error
    if not isinstance(body, dict):
        raise Invalid(f"{where}: expected an object, got {type(body).__name__}")
    missing = [key for key in ("id", "calculator", "inputs", "expected") if key not in body]
    if missing:
        raise Invalid(f"{where}: not a case: {', '.join(missing)} missing")
    tags = body.get("tags", [])
    if not isinstance(body["inputs"], dict) or not isinstance(tags, list):
        raise Invalid(f"{where}: not a case: inputs must be an object and tags a list")
    return RecordedCall(
        case_id=str(body["id"]),
        calculator=str(body["calculator"]),
        tags=tuple(map(str, tags)),
        inputs=body["inputs"],
        expected=body["expected"],
    )


def replayed(case: RecordedCall, replay: Replay) -> Result:
    """What our formula makes of a case. One on which upstream raised asks for numbers that are possible, no more."""
    try:
        answer = replay(case.inputs)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        return Result(case=case, difference=f"raised {type(error).__name__}: {error}")
    if "peer_crashes" in case.tags:
        return Result(case=case, difference=None if _is_sane(answer) else f"got {answer!r}, which is impossible")
    tolerance = TOLERANCES.get(case.calculator, TOLERANCE)
    return Result(case=case, difference=next(differences(case.expected, answer, tolerance=tolerance), None))


def differences(expected: Any, answer: Any, *, tolerance: float, where: str = "") -> Iterator[str]:
    """Where ``answer`` is not what was recorded: floats within the tolerance, everything else exactly."""
    if isinstance(expected, dict) and isinstance(answer, dict) and expected.keys() == answer.keys():
        for key in expected:
            yield from differences(expected[key], answer[key], tolerance=tolerance, where=f"{where}.{key}".lstrip("."))
    elif isinstance(expected, list) and isinstance(answer, list) and len(expected) == len(answer):
        for index, (ours, theirs) in enumerate(zip(answer, expected, strict=True)):
            yield from differences(theirs, ours, tolerance=tolerance, where=f"{where}[{index}]")
    elif not _agrees(expected, answer, tolerance=tolerance):
        yield f"{where + ': ' if where else ''}recorded {expected!r}, got {answer!r}"


def _agrees(expected: Any, answer: Any, *, tolerance: float) -> bool:
    if isinstance(expected, float) and isinstance(answer, int | float) and not isinstance(answer, bool):
        return math.isclose(expected, answer, rel_tol=tolerance, abs_tol=tolerance)
    return bool(expected == answer) and isinstance(expected, bool) is isinstance(answer, bool)


def _is_sane(answer: Any) -> bool:
    if isinstance(answer, dict):
        return all(map(_is_sane, answer.values()))
    if isinstance(answer, list):
        return all(map(_is_sane, answer))
    return not isinstance(answer, int | float) or (math.isfinite(answer) and answer >= 0)


def summary(name: str, cases: Sequence[RecordedCall], results: Sequence[Result]) -> list[str]:
    """The lines about a file: its counts, then the cases that differ, then those that are not counted."""
    counted = [result for result in results if result.is_counted]
    shown = [result for result in results if not result.is_counted]
    differing = _differing(counted)
    unclaimed = Counter(case.calculator for case in cases if case.calculator not in REPLAYS)
    parts = []
    if counted:
        parts.append(f"{len(counted) - len(differing)} passed, {len(differing)} failed")
    if shown:
        parts.append(f"{len(shown)} not counted (peer_defect)")
    parts += [f"{count} unclaimed: no strategy uses {calculator}" for calculator, count in unclaimed.items()]
    return [
        f"{name}: {'; '.join(parts) or 'no cases'}",
        *_named("differs", differing),
        *_named("peer_defect, ours differs", _differing(shown)),
    ]


def _differing(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if result.difference is not None]


def _named(what: str, results: Sequence[Result]) -> list[str]:
    lines = [f"  {what}: {result.case.case_id}: {result.difference}" for result in results[:CASES_NAMED_MAX]]
    if len(results) > CASES_NAMED_MAX:
        lines.append(f"  {what}: {len(results) - CASES_NAMED_MAX} more")
    return lines
