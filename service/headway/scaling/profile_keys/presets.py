"""Profiles to begin with, by name. A preset is keys with values; a key that a profile gives itself takes its place.

The numbers are those of the predecessor's profiles (docs/decisions/0010): objective, bounds, forecast policy, and as
hold the cooldown of the same preset.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "critical": {
            "objective": {"target_s": 10.0, "percentile": 99.0, "window_s": 120.0},
            "workers_min": 5,
            "workers_max": 50,
            "forecast": "aggressive",
            "hold_down_s": 30.0,
        },
        "high_volume": {
            "objective": {"target_s": 20.0, "percentile": 95.0, "window_s": 300.0},
            "workers_min": 3,
            "workers_max": 40,
            "forecast": "moderate",
            "hold_down_s": 45.0,
        },
        "balanced": {
            "objective": {"target_s": 30.0, "percentile": 95.0, "window_s": 300.0},
            "workers_min": 1,
            "workers_max": 10,
            "forecast": "moderate",
            "hold_down_s": 30.0,
        },
        "bursty": {
            "objective": {"target_s": 60.0, "percentile": 90.0, "window_s": 600.0},
            "workers_min": 0,
            "workers_max": 100,
            "forecast": "aggressive",
            "hold_down_s": 20.0,
        },
        "background": {
            "objective": {"target_s": 300.0, "percentile": 95.0, "window_s": 900.0},
            "workers_min": 0,
            "workers_max": 5,
            "forecast": "hint",
            "hold_down_s": 120.0,
        },
        "exclusive": {
            "objective": {"target_s": 60.0, "percentile": 95.0, "window_s": 300.0},
            "workers_min": 1,
            "workers_max": 1,
            "pinned": 1,
            "forecast": "off",
        },
    }
)


def with_preset(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` over those of the preset they name; an objective's keys one by one. An unknown name adds nothing."""
    name = values.get("preset")
    preset = PRESETS.get(name, {}) if isinstance(name, str) else {}
    merged = {**preset, **values}
    objective = values.get("objective")
    if "objective" in preset and isinstance(objective, Mapping):
        merged["objective"] = {**preset["objective"], **objective}
    return merged
