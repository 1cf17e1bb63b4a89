// A decision's reasons in sentences. They are read off the stored decision: nothing is explained that it does not hold.

import { count, counted, decimal, duration, rate } from "./format.js";

/** What changed, in a few words. */
export function change(previous, target) {
  if (previous === null) return `set to ${target}`;
  if (previous === target) return `kept at ${target}`;
  return `${previous} → ${target}`;
}

/** Why, in one to three sentences. */
export function why(decision) {
  const sentences = [reason(decision), ...held(decision), ...decision.notes.map(sentence)];
  return sentences.filter(Boolean).join(" ");
}

/** The demands, greatest first. */
export function demands(decision) {
  return [...decision.demands].sort((one, other) => other.slots - one.slots);
}

/** The steps that changed the count, after what was wanted. */
export function moves(decision) {
  return decision.steps.filter((step, index, all) => index === 0 || step.workers !== all[index - 1].workers);
}

/** A name of a demand or limit in words. */
export function words(name) {
  return name.replaceAll("_", " ");
}

function reason(decision) {
  const greatest = demands(decision)[0];
  if (!greatest || greatest.slots <= 0) return nothingToDo(decision);
  const tell = DEMANDS[greatest.name];
  return tell ? tell(greatest.slots, totals(decision)) : `The demand “${words(greatest.name)}” is ${slots(greatest.slots)}.`;
}

function nothingToDo(decision) {
  const seen = totals(decision);
  if (!decision.is_fresh || seen.waiting_jobs === null) return "";
  return seen.waiting_jobs ? `${waiting(seen)}, and no demand is above zero.` : "Nothing waits and nothing arrives.";
}

const slots = (value) => `${decimal(value)} ${value === 1 ? "slot" : "slots"}`;

const DEMANDS = {
  steady_state: (value, seen) =>
    `Jobs arrive at ${rate(seen.arrival_rate_per_s)} and take ${duration(seen.service_time_s)} each: that keeps ${slots(value)} busy.`,
  trend: (value, seen) =>
    `Arrivals are rising from ${rate(seen.arrival_rate_per_s)}: when a new worker is ready, ${slots(value)} will be busy.`,
  backlog_drain: (value, seen) =>
    `${waiting(seen)}: starting them all in time takes ${slots(value)}.`,
};

function waiting(seen) {
  const inFlight = seen.in_flight_jobs ? ` and ${count(seen.in_flight_jobs)} ${seen.in_flight_jobs === 1 ? "is" : "are"} in flight` : "";
  if (!seen.waiting_jobs) return inFlight ? `No job waits${inFlight}` : "No job waits";
  const oldest = seen.oldest_age_s === null ? "" : `, the oldest for ${duration(seen.oldest_age_s)}`;
  return `${counted(seen.waiting_jobs, "job")} ${seen.waiting_jobs === 1 ? "waits" : "wait"}${oldest}${inFlight}`;
}

const LIMITS = {
  hold_stale: (count_) => `Metrics are stale, and without them nothing goes down: held at ${count_}.`,
  hold_down: (count_) => `Fewer would do now, but not yet for long enough: held at ${count_}.`,
  pause: (count_) => `An operator has paused the pool: held at ${count_}.`,
  workers_min: (count_) => `The profile keeps at least ${count_}.`,
  workers_max: (count_, decision) =>
    decision.unknown_workers
      ? `The profile's ceiling leaves ${count_}, since ${counted(decision.unknown_workers, "worker")} may still run on hosts that went silent.`
      : `The profile allows at most ${count_}.`,
  capacity: (count_, decision) =>
    decision.notes.some((note) => note.startsWith("no known host")) ? `Held at ${count_}.` : `The hosts have room for ${count_}.`,
};

/** One sentence for each limit that changed the count, in their order. */
function held(decision) {
  return moves(decision)
    .slice(1)
    .map((step) => {
      const tell = LIMITS[step.name];
      return tell ? tell(step.workers, decision) : `The limit “${words(step.name)}” leaves ${step.workers}.`;
    });
}

function sentence(note) {
  const text = note.charAt(0).toUpperCase() + note.slice(1);
  return text.endsWith(".") ? text : `${text}.`;
}

/** The pool's queues together: counts and rates add, times are the greatest. */
function totals(decision) {
  const queues = decision.metrics;
  const all = (name) => queues.map((queue) => queue[name]).filter((value) => value !== null);
  const sum = (name) => (all(name).length ? all(name).reduce((one, other) => one + other, 0) : null);
  const most = (name) => (all(name).length ? Math.max(...all(name)) : null);
  return {
    waiting_jobs: sum("waiting_jobs"),
    in_flight_jobs: sum("in_flight_jobs"),
    oldest_age_s: most("oldest_age_s"),
    arrival_rate_per_s: sum("arrival_rate_per_s"),
    service_time_s: most("service_time_s"),
  };
}
