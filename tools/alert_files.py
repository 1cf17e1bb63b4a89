"""The files that are made from the table of conditions: rules for Prometheus, a board for Grafana, and a page.

.venv/bin/python tools/alert_files.py docs/reference
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headway.scaling.conditions.condition import Condition, Subject
from headway.scaling.conditions.condition_table import CONDITIONS
from headway.scaling.conditions.series_table import RECORDED

HEAD = """\
# What to be woken for, as rules of Prometheus; docs/reference/conditions.md says what each means and what to do then.
# Copy the file beside prometheus.yml, and name it there: rule_files: [alerts.yml]
# Made from service/headway/scaling/conditions/condition_table.py.
groups:
"""
PAGE_HEAD = """\
# Conditions

<!-- Made from service/headway/scaling/conditions/condition_table.py: tests/control/http/test_alert_files.py -->

Everything that can be true of an installation, its hosts and its pools. Health, states of pools, incidents, the rules
of [Prometheus](alerts.yml) and `headway doctor` take names, urgency and cures from here. `POOL` stands for the name of
a pool.

- *health*: [`GET /v1/health`](http-api.md#health) names the condition in `kinds`, and `/metrics` in
  `headway_health_reason`.
- *state*: the [state of a pool](http-api.md#states-of-a-pool) is the first condition here that is true of it.
- *incident*: the leader opens an [incident](http-api.md#alerts) with this `rule`. If the rule is `degraded`, its `kind`
  is the name of the condition.
- A name in bold is a rule of Prometheus, with the time for which its expression must hold.
- A *page* cannot wait for the morning, a *ticket* can, and a *note* is worth knowing.

| condition | severity | what is true | what to do | where it shows | in health after |
| --- | --- | --- | --- | --- | --- |
"""
LABELLED = {
    Subject.POOL: "pool {{ $labels.pool }} ",
    Subject.HOST: "host {{ $labels.host }} ",
    Subject.INSTALLATION: "",
}
"""What goes before the sentence of a condition in the summary of its rule."""
SOURCE = {"type": "prometheus", "uid": "${source}"}
OF_POOL = 'pool=~"$pool"'
PANELS: Sequence[tuple[str, str, str, str]] = (
    ("Attainment today", f'headway_pool_attainment_ratio{{{OF_POOL},window="1d"}}', "percentunit", "{{pool}}"),
    (
        "Error budget left, 30 days",
        f'headway_pool_error_budget_left_ratio{{{OF_POOL},window="30d"}}',
        "percentunit",
        "{{pool}}",
    ),
    (
        "Late jobs, share of the last hour",
        f"headway:pool_late_jobs:ratio_rate1h{{{OF_POOL}}}",
        "percentunit",
        "{{pool}}",
    ),
    ("Pickup time at the objective's percentile", f"headway_pool_pickup_seconds{{{OF_POOL}}}", "s", "{{pool}}"),
    ("Waiting jobs", f"sum by (pool) (headway_queue_waiting_jobs{{{OF_POOL}}})", "short", "{{pool}}"),
    ("Oldest waiting job", f"max by (pool) (headway_queue_oldest_age_seconds{{{OF_POOL}}})", "s", "{{pool}}"),
    ("Jobs started", f"sum by (pool) (rate(headway_queue_started_jobs_total{{{OF_POOL}}}[5m]))", "ops", "{{pool}}"),
    ("Jobs failed", f"sum by (pool) (rate(headway_queue_failed_jobs_total{{{OF_POOL}}}[5m]))", "ops", "{{pool}}"),
    ("Workers", f"headway_pool_workers{{{OF_POOL}}}", "short", "{{pool}} {{state}}"),
    ("Target", f"headway_pool_target_workers{{{OF_POOL}}}", "short", "{{pool}}"),
    ("Pipeline lag", "headway_pipeline_lag_seconds", "s", "{{pipeline}}"),
    ("Hosts", "headway_hosts", "short", "{{state}}"),
)
"""The title, the expression, the unit and the legend of each panel."""


def rules_yml() -> str:
    """The rule file of Prometheus."""
    lines = ["  - name: headway", "    rules:"]
    lines += _alerts(is_composed=False)
    lines += ["  - name: headway-recorded", "    rules:"]
    for name, expression in RECORDED:
        lines += [f"      - record: {name}", f"        expr: {expression}"]
    lines += ["  - name: headway-composed", "    rules:"]
    lines += _alerts(is_composed=True)
    return HEAD + "\n".join(lines) + "\n"


def board_json() -> str:
    """The board of Grafana, to import."""
    board = {
        "__inputs": [
            {"name": "source", "label": "Prometheus", "type": "datasource", "pluginId": "prometheus"},
        ],
        "uid": "headway",
        "title": "Headway",
        "tags": ["headway"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                {
                    "name": "pool",
                    "label": "Pool",
                    "type": "query",
                    "datasource": SOURCE,
                    "query": {"query": "label_values(headway_pool_objective_seconds, pool)", "refId": "pools"},
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                },
            ]
        },
        "panels": list(_panels()),
    }
    return json.dumps(board, indent=2) + "\n"


def conditions_md() -> str:
    """The page of all conditions."""
    return PAGE_HEAD + "".join(map(_row, CONDITIONS.values()))


FILES = {"alerts.yml": rules_yml, "grafana.json": board_json, "conditions.md": conditions_md}


def _row(condition: Condition) -> str:
    shown = [("health", condition.is_in_health), ("state", bool(condition.word))]
    found = [where for where, is_shown in shown if is_shown]
    found += [f"incident `{condition.rule}`"] if condition.rule else []
    if condition.alert is not None:
        held = f" after {condition.alert.for_s / 60:g} min" if condition.alert.for_s else ""
        found.append(f"**{condition.alert.name}**{held}")
    cells = (
        f"`{condition.name}`",
        condition.severity or "–",
        {Subject.POOL: "the pool ", Subject.HOST: "a host ", Subject.INSTALLATION: ""}[condition.subject]
        + condition.sentence,
        condition.cure or "–",
        "; ".join(found),
        condition.seen_after or "–",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _alerts(*, is_composed: bool) -> Iterator[str]:
    """The rules of one series compared with a number, or of several. Conditions that share one are as urgent."""
    made: set[str] = set()
    for condition in CONDITIONS.values():
        alert = condition.alert
        if alert is None or alert.is_composed is not is_composed or alert.name in made:
            continue
        made.add(alert.name)
        yield f"      - alert: {alert.name}"
        yield f"        expr: {alert.expression}"
        yield f"        for: {alert.for_s / 60:g}m"
        yield f"        labels: {{severity: {condition.severity}}}"
        yield "        annotations:"
        yield f'          summary: "{alert.summary or LABELLED[condition.subject] + condition.sentence}"'


def _panels() -> Iterator[dict[str, Any]]:
    for place, (title, expression, unit, legend) in enumerate(PANELS):
        yield {
            "id": place + 1,
            "type": "timeseries",
            "title": title,
            "datasource": SOURCE,
            "gridPos": {"x": place % 2 * 12, "y": place // 2 * 8, "w": 12, "h": 8},
            "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
            "targets": [{"refId": "A", "datasource": SOURCE, "expr": expression, "legendFormat": legend}],
        }


if __name__ == "__main__":
    for name, made in FILES.items():
        (Path(sys.argv[1]) / name).write_text(made())
