// The table of queues: which entries it has, what comes first, and what its tally counts.

import assert from "node:assert/strict";
import { test } from "node:test";

import { compared, entriesOf, namesOf, oldestOf, tally, usedOf } from "../../../service/headway/control/web/entries.js";
import { learn } from "../../../service/headway/control/web/states.js";

const DARK = "without fresh data";
const STATES = [
  ["breaching", 5, "late"],
  ["crash_loop", 4, "failing"],
  ["no_host", 4, "failing"],
  ["unseen", 3, DARK],
  ["stale", 3, DARK],
  ["suspended", 2, "suspended"],
  ["recovering", 1, ""],
  ["at_risk", 0, ""],
  ["unmeasured", 0, DARK],
  ["on_time", 0, ""],
];
learn({ states: STATES.map(([state, urgency, counted_as]) => ({ state, urgency, counted_as })) });

const METRICS = { waiting_jobs: 0, reserved_jobs: 0, oldest_age_s: null, sampled_at_s: null, in_flight_jobs: 0, pickup_objective_s: null };

function pool(name, { state = "on_time", queues = [name], running_workers = 1, has_fresh_depths = true, ...metrics } = {}) {
  return { pool: name, queues, state, has_fresh_depths, running_workers, metrics: { ...METRICS, ...metrics }, is_wait_known: true };
}

const queue = (name, of = null) => ({ queue: name, pool: of, metrics: METRICS, is_wait_known: true });

const sorted = (pools, column, now_s = 0) => entriesOf({ pools, queues: [] }).sort(compared(column, now_s)).map(({ name }) => name);

test("a pool of one queue is shown by that, one of several by its own name with its queues below", () => {
  const pools = [pool("mail", { queues: ["redis/mail"] }), pool("both", { queues: ["redis/a", "redis/b"] })];
  const queues = [queue("redis/mail", "mail"), queue("redis/a", "both"), queue("redis/b", "both"), queue("redis/free")];
  const entries = entriesOf({ pools, queues });
  assert.deepEqual(entries.map(({ name }) => name), ["redis/mail", "both", "redis/free"]);
  assert.deepEqual(entries.map(({ members }) => members.map((each) => each.queue)), [[], ["redis/a", "redis/b"], []]);
  assert.equal(entries[2].pool, null);
});

test("an entry is found by its pool's name and by that of each queue", () => {
  const [both, free] = entriesOf({ pools: [pool("both", { queues: ["redis/a", "redis/b"] })], queues: [queue("redis/free")] });
  assert.deepEqual(namesOf(both), ["both", "both", "redis/a", "redis/b"]);
  assert.deepEqual(namesOf(free), ["redis/free"]);
});

test("what is late comes first, then what is broken, then what is unknown, and names are ordered as people count", () => {
  const pools = [
    pool("mail-10"),
    pool("mail-9", { state: "at_risk" }),
    pool("dark", { state: "stale" }),
    pool("crashing", { state: "crash_loop" }),
    pool("late", { state: "breaching" }),
    pool("was late", { state: "recovering" }),
  ];
  assert.deepEqual(sorted(pools, "state"), ["late", "crashing", "dark", "was late", "mail-9", "mail-10"]);
  assert.deepEqual(sorted(pools, "name"), ["crashing", "dark", "late", "mail-9", "mail-10", "was late"]);
});

test("by a figure the greatest comes first and the unknown last", () => {
  const pools = [pool("none", { waiting_jobs: 0 }), pool("unknown", { waiting_jobs: null }), pool("many", { waiting_jobs: 12 })];
  assert.deepEqual(sorted(pools, "waiting"), ["many", "none", "unknown"]);
});

test("two unknown ones are ordered by name", () => {
  const pools = [pool("b", { running_workers: null }), pool("a", { running_workers: null })];
  assert.deepEqual(sorted(pools, "workers"), ["a", "b"]);
});

test("the longest wait goes on between readings, and stands still where nobody has read the queues for long", () => {
  const seen = { waiting_jobs: 1, oldest_age_s: 10, sampled_at_s: 100 };
  const oldest = (given) => oldestOf(entriesOf({ pools: [pool("mail", { ...seen, ...given })], queues: [] })[0], 130);
  assert.equal(oldest({}), 40);
  assert.equal(oldest({ state: "stale", has_fresh_depths: false }), 10);
  assert.equal(oldest({ state: "breaching", has_fresh_depths: false }), 10);
  assert.equal(oldest({ state: "stale" }), 40, "measurements are old, and depths are not");
});

test("a wait is a part of its own queue's objective, and none where it is unknown", () => {
  assert.equal(usedOf({ wait_s: 25, objective: { target_s: 5 } }), 5);
  assert.equal(usedOf({ wait_s: null, objective: { target_s: 5 } }), 0);
  assert.equal(usedOf(null), 0);
});

test("the tally counts what is late of what is managed, and names only what there is", () => {
  const late = pool("late", { state: "breaching" });
  assert.equal(tally(entriesOf({ pools: [late, pool("mail")], queues: [] })), "1 of 2 late");
  const pools = [late, pool("x", { state: "no_host" }), pool("y", { state: "suspended" }), pool("z", { state: "unseen" })];
  const all = tally(entriesOf({ pools, queues: [queue("free")] }));
  assert.equal(all, "1 of 4 late · 1 failing · 1 without fresh data · 1 suspended · 1 queue without a profile");
  assert.equal(tally(entriesOf({ pools: [], queues: [] })), "");
});
