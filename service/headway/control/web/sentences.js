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
  const sentences = [reason(decision), ...held(decision), ...untold(decision).map(sentence)];
  return sentences.filter(Boolean).join(" ");
}

/** The notes, less the one that says again what the limit has just said. */
function untold({ notes, steps }) {
  const isHeld = steps.some((step) => step.name === "hold_stale");
  const told = notes.map(plain);
  return isHeld ? told.map((note) => note.replace(/^(metrics are older than .*): they lower nothing until they are fresh$/, "$1")) : told;
}

/** The sum behind standing workers, in words. */
function plain(note) {
  return note.replace(
    /^needs (\d+) standing workers?: start-up ([\d.]+) s \+ tick ([\d.]+) s > ([\d.]+) s$/,
    (_, workers, startUp, tick, target) =>
      `a worker takes ${duration(Number(startUp))} to start, and a decision up to ${duration(Number(tick))}: together longer than the ${duration(Number(target))} promised, so ${workers} should always be there`,
  );
}

/** The demands, greatest first. */
export function demands(decision) {
  return [...decision.demands].sort((one, other) => other.slots - one.slots);
}

/** The steps that changed the count, after what was wanted. */
export function moves(decision) {
  return decision.steps.filter((step, index, all) => index === 0 || step.workers !== all[index - 1].workers);
}

const NAMES = {
  work_in_progress: "jobs at work",
  backlog_drain: "starting all that wait in time",
  wake: "waking from none",
  standing: "there before the next job",
  rhythm: "enough for bursts that keep a rhythm",
  steady_state: "keeping up with arrivals",
  trend: "arrivals that rise",
  forecast: "arrivals foretold",
  saturation: "every worker is busy",
  hold_stale: "old readings",
  hold_up: "wait before more",
  hold_overdue: "a job without time left",
  hold_down: "wait before fewer",
  tolerance: "too small a change",
  anti_flapping: "no back and forth",
  crash_loop: "workers that die at once",
  activation: "too few jobs to wake for",
  override: "set by hand",
  workers_min: "profile's minimum",
  workers_max: "profile's maximum",
  capacity: "room on the hosts",
  share: "share of scarce room",
};

/** A name of a demand or limit in plain words; one that has none yet, in its own. */
export const named = (name) => NAMES[name] ?? words(name);

/** A name of a demand or limit in words. */
export function words(name) {
  return name.replaceAll("_", " ");
}

function reason(decision) {
  const greatest = demands(decision)[0];
  if (!greatest || greatest.slots <= 0) return nothingToDo(decision);
  const tell = DEMANDS[greatest.name];
  return tell ? tell(greatest.slots, totals(decision)) : `“${named(greatest.name)}” asks for ${slots(greatest.slots)}.`;
}

function nothingToDo(decision) {
  const seen = totals(decision);
  if (!decision.is_fresh || seen.waiting_jobs === null) return "";
  if (seen.waiting_jobs) return `${waiting(seen)}, and no demand is above zero.`;
  return seen.arrival_rate_per_s === 0 ? "Nothing waits and nothing arrives." : `${waiting(seen)}.`;
}

const slots = (value) => `${decimal(value)} ${value === 1 ? "job" : "jobs"} at a time`;

const DEMANDS = {
  work_in_progress: (value, seen) => `${waiting(seen)}: workers for ${slots(value)}, at work or starting, are enough.`,
  backlog_drain: (value, seen) => `${waiting(seen)}: starting them all in time takes workers for ${slots(value)}.`,
  wake: (value, seen) => `${waiting(seen)}, and no worker is there: waking takes workers for ${slots(value)}.`,
  standing: (value) =>
    `A worker started now would come too late for the next jobs that may arrive: workers for ${slots(value)} should be there before them.`,
  rhythm: (value) =>
    `Bursts keep a rhythm with short pauses: keeping workers for ${slots(value)} starts every job in time and costs less than starting them anew.`,
  steady_state: (value, seen) =>
    `Jobs arrive at ${rate(seen.arrival_rate_per_s)} and take ${duration(seen.service_time_s)} each: that is ${slots(value)}.`,
  trend: (value, seen) =>
    `Arrivals are rising from ${rate(seen.arrival_rate_per_s)}: when a new worker is ready, that will be ${slots(value)}.`,
  forecast: (value) => `What is forecast to arrive by the time a new worker is ready is ${slots(value)}.`,
  saturation: (value) => `Every worker is busy, and the strategy then wants one more: ${slots(value)}.`,
  smoother: (value) => `While throughput is steady the strategy comes down one by one, now to ${slots(value)}.`,
  first_worker: (value, seen) => `${waiting(seen)}, and nothing works on them: a first worker, for ${slots(value)}.`,
  jobs_per_worker: (value, seen) => `${waiting(seen)}: the strategy's workers for so many jobs make ${slots(value)}.`,
  balance: (value) => `The strategy's balance of the queues is at ${slots(value)}.`,
  fixed: (value) => `The profile's floor is ${slots(value)}.`,
  time_of_day: (value) => `The crew of this hour has ${slots(value)}.`,
};

function waiting(seen) {
  const inFlight = seen.in_flight_jobs ? ` and ${count(seen.in_flight_jobs)} ${seen.in_flight_jobs === 1 ? "is" : "are"} at work` : "";
  if (!seen.waiting_jobs) return inFlight ? `No job waits${inFlight}` : "No job waits";
  const oldest = seen.oldest_age_s === null ? "" : `, the oldest for ${duration(seen.oldest_age_s)}`;
  return `${counted(seen.waiting_jobs, "job")} ${seen.waiting_jobs === 1 ? "waits" : "wait"}${oldest}${inFlight}`;
}

const LIMITS = {
  hold_stale: (count_) => `The last reading is old, and without a new one nothing goes down: held at ${count_}.`,
  tolerance: (count_) => `Too small a change to make: held at ${count_}.`,
  hold_up: (count_) => `More is wanted, but not yet for long enough: ${count_} for now.`,
  hold_overdue: (count_) => `A job waits that has no time left, so nobody leaves: held at ${count_}.`,
  hold_down: (count_) => `Fewer would do now, but not yet for long enough: held at ${count_}.`,
  cooldown: (count_) => `The strategy's cooldown allows no change yet: held at ${count_}.`,
  anti_flapping: (count_) => `The strategy turns only after its cooldown and comes down by a share at a time: ${count_} for now.`,
  step: (count_) => `The profile's steps lead to ${count_} for now.`,
  crash_loop: (count_) => `Its workers only end too early wherever they are started: no more than ${count_} until one stays.`,
  activation: () => "Too few jobs have come to wake the pool from zero: nobody is started yet.",
  fallback: (count_) => `Metrics have been missing for long: the profile falls back on ${count_}.`,
  pause: (count_) => `An operator has paused the pool: held at ${count_}.`,
  override: (count_) => `An operator has set ${count_} for a while.`,
  schedule: (count_) => `The schedule of this hour makes it ${count_}.`,
  workers_min: (count_) => `The profile keeps at least ${count_}.`,
  workers_max: (count_, decision) => {
    const others = [];
    if (decision.unknown_workers) others.push(`${counted(decision.unknown_workers, "worker")} may still run on hosts that went silent`);
    if (decision.leaving_workers) others.push(`${counted(decision.leaving_workers, "worker")} asked to stop have not ended yet`);
    return others.length
      ? `The profile's ceiling leaves ${count_}, since ${others.join(" and ")}.`
      : `The profile allows at most ${count_}.`;
  },
  pinned: (count_) => `The pool is pinned to ${count_}.`,
  rate_limit: (count_) => `The service that the jobs call allows ${count_}.`,
  budget: (count_) => `The budget pays for ${count_}.`,
  share: (count_) => `Room is scarce: the pool's share of it is ${count_}.`,
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
