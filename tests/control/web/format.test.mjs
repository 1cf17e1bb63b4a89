// Numbers as people read them: what is unknown is never 0, and every figure has as many digits as mean something.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as format from "../../../service/headway/control/web/format.js";

/** Each value gives its text, by name of the function. */
function gives(name, rows) {
  test(`${name} gives ${rows.map(([, text]) => text).join(", ")}`, () => {
    assert.deepEqual(rows.map(([value]) => format[name](value)), rows.map(([, text]) => text));
  });
}

gives("count", [[0, "0"], [1999.6, "2,000"]]);
gives("short", [[99_999, "99,999"], [250_000, "250K"]]);
gives("decimal", [[0, "0"], [0.04, "0"], [0.26, "0.3"], [9.94, "9.9"], [12.6, "13"], [1234.5, "1,235"]]);
gives("duration", [
  [0, "0 s"],
  [0.0001, "1 ms"], // it took some time
  [0.05, "50 ms"],
  [9, "9 s"],
  [8.94, "8.9 s"],
  [119, "119 s"],
  [120, "2 min"],
  [5399, "90 min"],
  [5400, "1.5 h"],
  [172_800, "2 days"],
]);
gives("ago", [[1.9, "just now"], [2.9, "2 s ago"], [119.9, "119 s ago"], [180, "3 min ago"]]);
gives("rate", [[0, "0/s"], [0.25, "15/min"], [0.5, "0.5/s"], [120, "120/s"]]);
gives("bytes", [[0, "0 B"], [1023, "1023 B"], [1024, "1.0 KiB"], [10 * 1024, "10 KiB"], [3 * 1024 ** 3, "3.0 GiB"]]);
gives("ratio", [[0, "0 %"], [1, "100 %"], [5.004, "500 %"]]);
gives("slo", [[{ percentile: 99, target_s: 30 }, "99 % within 30 s"], [{ percentile: 95, target_s: 0.5 }, "95 % within 0.5 s"], [{ percentile: 99.5, target_s: 9 }, "99.5 % within 9 s"], [{ percentile: 99.95, target_s: 9 }, "99.95 % within 9 s"]]);
gives("hasOwn", [[{ "redis/bulk": {} }, true], [{}, false], [undefined, false]]);

for (const name of ["count", "decimal", "duration", "ago", "rate", "bytes", "ratio"]) {
  test(`${name} says of what is unknown that it is, and not 0`, () => {
    assert.equal(format[name](null), "unknown");
    assert.equal(format[name](undefined), "unknown");
  });
}

test("one is counted without an s", () => {
  assert.deepEqual([0, 1, 2].map((jobs) => format.counted(jobs, "job")), ["0 jobs", "1 job", "2 jobs"]);
});

test("the longest wait ages between readings, as far as a job waits and its age is known", () => {
  const seen = { waiting_jobs: 1, reserved_jobs: 0, oldest_age_s: 40, sampled_at_s: 1000 };
  assert.equal(format.aged(seen, 1040), 80);
  assert.equal(format.aged(seen, 990), 40); // the browser's clock is behind
  assert.equal(format.aged({ ...seen, waiting_jobs: 0, reserved_jobs: 2 }, 1040), 80);
  assert.equal(format.aged({ ...seen, waiting_jobs: 0 }, 1040), 40);
  assert.equal(format.aged({ ...seen, oldest_age_s: null }, 1040), null);
  assert.equal(format.aged({ ...seen, sampled_at_s: null }, 1040), 40);
});

test("waiting jobs have beside them those that workers have reserved, or that these are unknown", () => {
  const shown = (metrics, isWaitKnown = true) => format.waiting({ metrics, isWaitKnown });
  assert.equal(shown({ waiting_jobs: 3, reserved_jobs: 0 }), "3");
  assert.equal(shown({ waiting_jobs: 3, reserved_jobs: 16 }), "3 + 16 reserved");
  assert.equal(shown({ waiting_jobs: null, reserved_jobs: null }, false), "unknown + unknown reserved");
});

test("where it is unknown how many jobs wait, the longest wait is a lower bound", () => {
  assert.equal(format.longestWait(12, true), "12 s");
  assert.equal(format.longestWait(12, false), "at least 12 s");
  assert.equal(format.longestWait(0, false), "unknown");
});

test("jobs in flight are a count, a lower bound or unknown", () => {
  assert.equal(format.inFlight({ in_flight_jobs: 0, in_flight_min_jobs: 0 }), "0");
  assert.equal(format.inFlight({ in_flight_jobs: null, in_flight_min_jobs: 4 }), "at least 4");
  assert.equal(format.inFlight({ in_flight_jobs: null, in_flight_min_jobs: 0 }), "unknown");
});
