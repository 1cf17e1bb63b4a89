"""The files that are made from the alert rules: rules for Prometheus, and a board for Grafana."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headway.control.http.prometheus.alert_rules import COMPOSED, RECORDED, SIMPLE, AlertRule

HEAD = """\
# What to be woken for, as rules of Prometheus; docs/reference/metrics.md says what each means and where to look then.
# Copy the file beside prometheus.yml, and name it there: rule_files: [alerts.yml]
# Made from service/headway/control/http/prometheus/alert_rules.py.
groups:
"""
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
    lines += [line for rule in SIMPLE for line in _alert(rule)]
    lines += ["  - name: headway-recorded", "    rules:"]
    for rule in RECORDED:
        lines += [f"      - record: {rule.name}", f"        expr: {rule.expression}"]
    lines += ["  - name: headway-composed", "    rules:"]
    lines += [line for rule in COMPOSED for line in _alert(rule)]
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


FILES = {"alerts.yml": rules_yml, "grafana.json": board_json}


def _alert(rule: AlertRule) -> list[str]:
    minutes = f"{rule.for_s / 60:g}m"
    return [
        f"      - alert: {rule.name}",
        f"        expr: {rule.expression}",
        f"        for: {minutes}",
        f"        labels: {{severity: {rule.severity}}}",
        "        annotations:",
        f'          summary: "{rule.summary}"',
    ]


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
