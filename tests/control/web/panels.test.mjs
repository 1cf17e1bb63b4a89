// What the charts show: the objective's own percentile, each other one once, unknown values as such, and jobs per second.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isEmpty, panelsOf } from "../../../service/headway/control/web/panels.js";

const linesOf = (name, pool) => panelsOf(pool).find((panel) => panel.name === name).lines;
const wait = (objective) => linesOf("wait", { objective });
const labels = (lines) => lines.map(({ label }) => label);

test("waits are shown at the objective's percentile, and no percentile twice", () => {
  const at = (percentile) => labels(wait({ percentile, target_s: 30 }));
  assert.deepEqual(at(99), ["99 % started within", "50 %", "95 %", "objective"]);
  assert.deepEqual(at(95), ["95 % started within", "50 %", "objective"]);
  assert.deepEqual(at(50), ["50 % started within", "95 %", "objective"]);
});

test("a queue that nobody manages has waits and no objective", () => {
  assert.deepEqual(labels(wait(null)), ["started within", "50 %", "95 %"]);
});

test("the objective and the other percentiles are dashed or thin: the accent's width is the objective's own", () => {
  const lines = wait({ percentile: 99, target_s: 30 });
  assert.deepEqual(lines.map(({ dash }) => Boolean(dash)), [false, true, false, true]);
  assert.deepEqual(lines.map(({ width }) => width), [2, undefined, undefined, undefined]);
});

test("of queues with objectives of their own, waits are parts of each queue's objective", () => {
  const [panel] = panelsOf({ objective: { percentile: 99, target_s: 5 }, member_objectives: { "redis/bulk": {} } });
  assert.equal(panel.title, "Wait before the start, as a part of each queue's objective");
  assert.equal(panel.unit(5), "500 %");
  const [, objective] = panel.lines;
  assert.deepEqual(objective.values({ columns: { at_s: [0, 5] } }), [1, 1]);
});

test("jobs of a step are shown per second, and unknown ones as unknown", () => {
  const [arrive] = linesOf("flow", { objective: null });
  assert.deepEqual(arrive.values({ columns: { enqueued: [10, null, 0] }, step_s: 5 }), [2, null, 0]);
});

test("a column that is not there is unknown at every moment", () => {
  const [waiting] = linesOf("backlog", { objective: null });
  assert.deepEqual(waiting.values({ columns: { at_s: [0, 5] } }), [null, null]);
});

test("what is counted has whole steps on its axis", () => {
  const whole = panelsOf({ objective: null }).filter(({ steps }) => steps).map(({ name }) => name);
  assert.deepEqual(whole, ["backlog", "failures", "workers"]);
  const { steps } = panelsOf({ objective: null }).find(({ name }) => name === "failures");
  assert.deepEqual(steps.slice(0, 5), [1, 2, 5, 10, 20]);
});

test("a band is drawn from the line that no forecast exceeds down to the forecast", () => {
  const flow = linesOf("flow", { objective: null });
  const banded = flow.filter(({ above }) => above);
  assert.deepEqual(banded.map(({ label, above }) => [label, above]), [["forecast, 95 % below", "forecast"]]);
  assert.ok(labels(flow).includes("forecast"));
});

test("a range in which only the axis, the ceiling or a forecast is known has nothing to show", () => {
  const columns = { at_s: [0, 5], ceiling_workers: [4, 4], forecast_jobs_per_s: [1, 1], backlog_jobs: [null, null] };
  assert.ok(isEmpty({ columns }));
  assert.ok(!isEmpty({ columns: { ...columns, backlog_jobs: [null, 0] } }));
});
