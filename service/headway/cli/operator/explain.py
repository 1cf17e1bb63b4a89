"""`headway explain`: a decision as sentences, from the value that was decided and nothing else."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.cli.api_client import Api, connected, path_of
from headway.cli.operator.completion import names
from headway.cli.operator.pool_names import check_pool_name
from headway.cli.operator.pools_table import running_of
from headway.cli.terminal.live_behaviour import predicted
from headway.cli.terminal.printing import say_json
from headway.cli.terminal.screen import Screen, Text, paragraph
from headway.cli.typer_app import main_of
from headway.errors import Invalid, Misconfigured, NotFound, Refused
from headway.scaling.explain import explained
from headway.scaling.explanations.phrases import duration
from headway.scaling.explanations.queue_phrases import depths
from headway.scaling.mapping import from_mapping
from headway.scaling.model import Decision, QueueMetrics
from headway.strategies import load_strategies

EXPLAIN_COLUMNS = 100  # sentences wider than this are hard to read
DECISION_OLD_S = 15.0  # three evaluations: what an older decision saw has probably changed

app = typer.Typer(add_completion=False)
main = main_of(app)


@app.command("explain")
def explain(
    pool: Annotated[
        str | None, typer.Argument(metavar="POOL", help="Whose newest decision.", autocompletion=names.pools)
    ] = None,
    *,
    file: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A decision as JSON instead, as `headway get` gives it; - reads it."),
    ] = None,
    with_terms: Annotated[
        bool, typer.Option("--terms", help="Each demand's terms too, from which its slots can be recalculated.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The decision itself.")] = False,
) -> None:
    """Show why a pool has its workers: its measured load, every demand, each limit that moved the count."""
    if (pool is None) == (file is None):
        raise Refused("name a pool, or a decision with --file PATH")
    since: tuple[str, ...] = ()
    if pool is not None:
        check_pool_name(pool, "explain")
        with connected() as api:
            row, since = api.get(path_of("pools", pool, "explain")), (*_now(api, pool), _scored(api, pool))
    else:
        row = _read(str(file))
    try:
        decision = from_mapping(Decision, row["decision"])
        if pool is not None:
            sentences = tuple(row["sentences"])
        else:  # as a control plane of this version, with the strategies of this installation, would explain it
            sentences = explained(decision, previous_workers=row.get("previous_workers"), strategies=load_strategies())
    except (TypeError, ValueError, AttributeError, Invalid) as error:
        raise Invalid(f"{file or 'the answer'} holds no decision that this version can read: {error}") from error
    if as_json:
        say_json(row)
        return
    _show(decision, (*sentences, *(_terms(decision) if with_terms else ())), since)


def _terms(decision: Decision) -> tuple[str, ...]:
    """One line per demand, the greatest first: its slots, and what they follow from."""
    ranked = decision.ranked_demands
    texts = (", ".join(f"{name} {value:.10g}" for name, value in demand.terms.items()) for demand in ranked)
    return tuple(f"{each.name} {each.slots:g}: {text or 'no terms'}" for each, text in zip(ranked, texts, strict=True))


def _now(api: Api, pool: str) -> tuple[str, ...]:
    """What has come of it since: the workers that agents report, the queues as last read, and what is wrong.

    A decision that is as the one before is stored every few minutes only: what it saw may be as old.
    """
    for seen in api.get("/v1/pools", pool=pool)["pools"]:
        workers = f"Now, as agents reported {_age(seen['reported_age_s'])}: {running_of(seen)} running"
        if seen["mode"] == "recommend":
            workers = f"Now, of workers that the broker lists: {running_of(seen)}"
        said_lines = [f"{workers}; {_depths(seen)}.", *_forecast(seen)]
        if seen.get("awaited") is not None and seen["overdue"] is None:  # else it is among what is wrong
            said_lines.append(f"What takes the places of draining workers may have to wait for {seen['awaited']}.")
        return (*said_lines, *(f"{cause[:1].upper()}{cause[1:]}." for cause in seen["causes"]))
    return ()


def _depths(seen: dict[str, Any]) -> str:
    """Its queues together, which a decision shows as they were when it was made."""
    known = from_mapping(QueueMetrics, seen["metrics"])
    if known.sampled_at_s is None:
        return "its queues were never read"
    read = "one of which was never read" if seen["sample_age_s"] is None else f"read {_age(seen['sample_age_s'])}"
    return f"in its queues, {read}, {depths(known)}"


def _age(age_s: float | None) -> str:
    return "at a time that is not known" if age_s is None else f"{duration(float(round(age_s)))} ago"


def _forecast(seen: dict[str, Any]) -> list[str]:
    """What is to be known of the prediction, which counts on workers that stay and on jobs that succeed."""
    said_lines = []
    if seen["state"] == "crash_loop" or (seen["failing_workers"] and not seen["running_workers"]):
        said_lines.append("What is predicted counts on workers that stay, and its workers crash.")
    elif seen["mode"] != "recommend" and (seen["state"] == "no_host" or seen["reported_age_s"] is None):
        said_lines.append("What is predicted counts on workers that can start, and no reachable host can run one.")
    if seen["failures"] is not None and seen["failures"]["is_failing"]:
        said_lines.append("What is predicted is when jobs start, and not that they succeed.")
    return said_lines


def _scored(api: Api, pool: str) -> str:
    try:
        return predicted(api.get(path_of("pools", pool, "behaviour"))["prediction"])
    except NotFound:  # of a pool whose profile is gone the decisions are still there
        return predicted(None)


def _read(file: str) -> dict[str, Any]:
    """The decision in ``file``: bare, as a row of the API, or the first of a list of rows."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except OSError as error:
        raise Misconfigured(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{file} is no JSON: it is not even text") from error
    try:
        body = json.loads(text)
    except json.JSONDecodeError as error:
        raise Invalid(f"{file} line {error.lineno}: is no JSON: {error.msg}") from error
    if isinstance(body, dict) and isinstance(body.get("decisions"), list) and body["decisions"]:
        body = body["decisions"][0]
    if not isinstance(body, dict):
        raise Invalid(f"{file} holds no decision: expected one as `headway get decisions --json` gives it")
    return body if "decision" in body else {"decision": body}


def _show(decision: Decision, sentences: tuple[str, ...], since: tuple[str, ...]) -> None:
    """Print what the decision says, and what has come of it ``since``."""
    console = Screen()
    columns = min(console.width, EXPLAIN_COLUMNS) if console.is_terminal else EXPLAIN_COLUMNS
    if decision.at_s:
        age_s = float(max(0, round(time.time() - decision.at_s)))
        moment = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(decision.at_s))
        scope = '; all before "Now" is as of then' if since and age_s >= DECISION_OLD_S else ""
        console.print(Text(f"Decided {moment}, {duration(age_s)} ago{scope}", style="dim"))
    for number, sentence in enumerate((*sentences, *since)):
        style = "bold" if number == 0 else ""
        console.print(paragraph(sentence, columns, style=style), soft_wrap=True)
