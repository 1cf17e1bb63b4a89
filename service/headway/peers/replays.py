"""Recorded inputs of other autoscalers' calculators, turned into calls of ``headway.peers.formulas``.

Keys are the recordings' own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from statistics import pstdev
from types import MappingProxyType
from typing import Any

from headway.peers.formulas import cooldown
from headway.peers.formulas.arrivals import (
    ArrivalEstimate,
    Outlook,
    PolledSample,
    estimated_arrivals,
    kept_samples,
)
from headway.peers.formulas.drain import backlog_drain, backlog_drain_classic
from headway.peers.formulas.forecast import POLICIES, TimedRate, fit, trended_classic
from headway.peers.formulas.hybrid_parts import Hybrid, Learned, Settings, Sight, hybrid, seen_rates, smoothed
from headway.peers.formulas.percentiles import interpolated, nearest_rank, recent_waits_s
from headway.peers.formulas.start_up import StartUps, after_first_pickup, after_spawn, start_up_s
from headway.peers.formulas.target_sizing import (
    Polled,
    Sized,
    backlog_only,
    conservative,
    littles_law,
    predictive_classic,
    simple_rate,
)
from headway.scaling.model import LastMove

Given = Mapping[str, Any]
Replay = Callable[[Given], Any]


def _backlog_drain(given: Given) -> float:
    return backlog_drain(
        given["backlog"],
        given["oldest_job_age"],
        objective_s=given["sla_target"],
        service_s=given["avg_job_time"],
        threshold=given["breach_threshold"],
        left_after_start_s=given["effective_sla_seconds"],
    )


def _backlog_drain_classic(given: Given) -> float:
    return backlog_drain_classic(
        given["backlog"],
        given["oldest_job_age"],
        objective_s=given["sla_target"],
        service_s=given["avg_job_time"],
        threshold=given["breach_threshold"],
    )


def _predictive_strategy_classic(given: Given) -> dict[str, Any]:
    trend, forecast_per_s = given["trend_direction"], given["trend_forecast"]
    seen = Polled(
        rate_per_s=given["processing_rate"],
        backlog_jobs=given["pending"],
        oldest_age_s=given["oldest_job_age"],
        objective_s=given["sla_target"],
        threshold=given["breach_threshold"],
    )
    sized = predictive_classic(seen, active_workers=given["active_workers"], trend=trend, forecast_per_s=forecast_per_s)
    return {
        "target_workers": sized.workers,
        "avg_job_time": sized.service_s,
        "steady_state": sized.steady,
        "predicted_rate": trended_classic(seen.rate_per_s, trend, forecast_per_s),
        "predictive": sized.trended,
        "backlog_drain": sized.drain,
        "predicted_pickup_seconds": sized.pickup_s,
    }


def _arrivals(given: Given) -> list[dict[str, Any]]:
    outlook = _outlook(given) if "forecast_policy" in given else None
    samples: tuple[PolledSample, ...] = ()
    answers = []
    for step in given["steps"]:
        samples = kept_samples(samples, PolledSample(step["t"], step["backlog"]))
        answers.append(_arrival(estimated_arrivals(samples, served_per_s=step["processing_rate"], outlook=outlook)))
    return answers


def _outlook(given: Given) -> Outlook:
    return Outlook(policy=POLICIES[given["forecast_policy"]], horizon_s=given["horizon_seconds"])


def _arrival(estimate: ArrivalEstimate) -> dict[str, Any]:
    return {"rate": estimate.rate_per_s, "confidence": estimate.confidence, "source": estimate.source}


def _linear_regression(given: Given) -> dict[str, Any]:
    history = [TimedRate(at_s=each["timestamp"], rate_per_s=each["rate"]) for each in given["history"]]
    line = fit(history, horizon_s=given["horizon_seconds"])
    return {
        "projected_rate": line.projected_per_s,
        "r_squared": line.r_squared,
        "slope": line.slope_per_s2,
        "sample_count": line.samples,
        "has_sufficient_data": line.is_sufficient,
    }


def _hybrid_strategy(given: Given) -> list[dict[str, Any]]:
    settings = Settings(
        objective_s=given["sla_target"],
        workers_min=given["min_workers"],
        workers_max=given["max_workers"],
        threshold=given["breach_threshold"],
        fallback_s=given["fallback_job_time"],
        confidence_min=given["min_confidence"],
        outlook=_outlook(given),
    )
    learned, answers = Learned(), []
    for step in given["steps"]:
        waited_s = nearest_rank(step["pickup_samples"], given["percentile"], samples_min=given["min_samples"])
        answer, learned = hybrid(_sight(step, waited_s), learned, settings)
        answers.append(_hybrid(answer, is_waited=waited_s is not None))
    return answers


def _sight(step: Given, waited_s: float | None) -> Sight:
    return Sight(
        at_s=step["t"],
        backlog_jobs=step["pending"],
        oldest_age_s=step["oldest_job_age"],
        served_per_s=step["throughput_per_minute"] / 60.0,
        measured_s=step["avg_duration"],
        failure_percent=step["failure_rate"],
        busy_percent=step["utilization_rate"],
        active_workers=step["active_workers"],
        start_up_s=step["spawn_latency"],
        waited_s=waited_s,
    )


def _hybrid(answer: Hybrid, *, is_waited: bool) -> dict[str, Any]:
    return {
        "target_workers": answer.workers,
        "avg_job_time": answer.sized.service_s,
        "arrival_rate": answer.rate_per_s,
        "raw_arrival_rate": answer.raw_rate_per_s,
        "retry_noise": answer.retries_per_s,
        "effective_sla": answer.span_s,
        "sla_signal": answer.signal_s,
        "sla_signal_source": "p95" if is_waited else "oldest_age_fallback",
        "steady_state": answer.sized.steady,
        "backlog_drain": answer.sized.drain,
        "saturation_boost": answer.is_boosted,
        "smoothed": answer.is_smoothed,
        "predicted_pickup_seconds": answer.sized.pickup_s,
    }


def _other_strategies(given: Given) -> dict[str, Any]:
    seen = Polled(
        rate_per_s=given["throughput_per_minute"] / 60.0,
        backlog_jobs=given["pending"],
        oldest_age_s=given["oldest_job_age"],
        objective_s=given["sla_target"],
        threshold=given["breach_threshold"],
        measured_s=given["avg_duration"],
        fallback_s=given["fallback_job_time"],
    )
    sized = OTHER_STRATEGIES[given["strategy"]](seen)
    return {"target_workers": sized.workers, "predicted_pickup_seconds": sized.pickup_s}


OTHER_STRATEGIES: Mapping[str, Callable[[Polled], Sized]] = MappingProxyType(
    {"simple_rate": simple_rate, "backlog_only": backlog_only, "conservative": conservative}
)


def _spawn_latency_ema(given: Given) -> list[float]:
    seen, answers = StartUps(), []
    for event in given["events"]:
        if event["event"] == "spawn":
            seen = after_spawn(seen, event["worker"], at_s=event["t"])
        else:
            seen = after_first_pickup(seen, event["worker"], at_s=event["t"], weight=given["ema_alpha"])
        answers.append(start_up_s(seen, samples_min=given["min_samples"], fallback_s=given["fallback_seconds"]))
    return answers


def _target_smoother(given: Given) -> list[int]:
    rates: tuple[float, ...] = ()
    answers: list[int] = []
    for step in given["steps"]:
        rates = seen_rates(rates, step["throughput_per_minute"])
        answers.append(smoothed(step["raw_target"], last_workers=answers[-1] if answers else None, rates=rates))
    return answers


def _percentile_linear(given: Given) -> dict[str, Any]:
    values: Sequence[float] = given["values"]
    return {
        "percentiles": [interpolated(values, percentile) for percentile in given["percentiles"]],
        "standard_deviation": pstdev(values) if values else 0.0,
    }


def _pickup_window(given: Given) -> dict[str, Any]:
    waits_s = recent_waits_s(
        [(each["t"], each["pickup_seconds"]) for each in given["records"]],
        now_s=given["now"],
        window_s=given["window_seconds"],
        kept_max=given["max_samples_per_queue"],
    )
    return {
        "sample_count": len(waits_s),
        "value": nearest_rank(waits_s, given["percentile"], samples_min=given["min_samples"]),
    }


def _scale_down_policies(given: Given) -> dict[str, int]:
    workers, wanted_workers = given["current_workers"], given["target_workers"]
    if given["policy"] == "none":
        kept = cooldown.no_scale_down(workers, wanted_workers, host_workers_max=given.get("host_max_workers"))
        return {"target_workers": kept}
    if given["policy"].startswith("conservative"):
        return {"target_workers": cooldown.conservative(workers, wanted_workers)}
    return {"target_workers": wanted_workers}


def _anti_flapping(given: Given) -> list[dict[str, Any]]:
    workers: int = given["initial_workers"]
    last: LastMove | None = None
    was_breaching = False
    answers = []
    for step in given["steps"]:
        is_breaching = 0 < step["oldest_job_age"] >= given["sla_target"]
        wanted = max(given["min_workers"], min(given["max_workers"], step["strategy_target"]))
        before = workers
        if cooldown.is_reversal_held(
            before, wanted, last, now_s=step["t"], cooldown_s=given["cooldown_seconds"], is_breaching=is_breaching
        ):
            answers.append({"workers_before": before, "workers_after": before, "events": []})
            continue
        workers = cooldown.conservative(before, wanted) if given["conservative_scale_down"] else wanted
        if workers != before:
            last = LastMove(at_s=step["t"], is_up=workers > before)
        events = _events(moved=workers != before, was_breaching=was_breaching, is_breaching=is_breaching)
        answers.append({"workers_before": before, "workers_after": workers, "events": events})
        was_breaching = is_breaching
    return answers


def _events(*, moved: bool, was_breaching: bool, is_breaching: bool) -> list[str]:
    """What upstream reports of a step that it does not hold back, in its order."""
    reasons = {
        "WorkersScaled": moved,
        "ScalingDecisionMade": True,
        "SlaBreached": is_breaching and not was_breaching,
        "SlaRecovered": was_breaching and not is_breaching,
    }
    return [name for name, is_given in reasons.items() if is_given]


REPLAYS: Mapping[str, Replay] = MappingProxyType(
    {
        "littles_law": lambda given: littles_law(given["arrival_rate"], given["avg_processing_time"]),
        "backlog_drain": _backlog_drain,
        "backlog_drain_classic": _backlog_drain_classic,
        "trend_predictor_classic": lambda given: trended_classic(
            given["current_rate"], given["trend_direction"], given["trend_forecast"]
        ),
        "predictive_strategy_classic": _predictive_strategy_classic,
        "arrival_rate_estimator": _arrivals,
        "arrival_rate_forecast": _arrivals,
        "linear_regression": _linear_regression,
        "linear_regression_epoch": _linear_regression,
        "forecast_policy": lambda given: asdict(POLICIES[given["policy"]]),
        "hybrid_strategy": _hybrid_strategy,
        "other_strategies": _other_strategies,
        "spawn_latency_ema": _spawn_latency_ema,
        "target_smoother": _target_smoother,
        "percentile_nearest_rank": lambda given: nearest_rank(
            given["values"], given["percentile"], samples_min=given["min_samples"]
        ),
        "percentile_linear": _percentile_linear,
        "pickup_window": _pickup_window,
        "anti_flapping": _anti_flapping,
        "scale_down_policies": _scale_down_policies,
    }
)
"""By the calculator that a recording names. One that is not here is no strategy's."""
