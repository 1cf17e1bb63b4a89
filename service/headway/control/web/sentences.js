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
  const sentences = [reason(decision), ...held(decision), ...unsaid(decision).map(sentence)];
  return sentences.filter(Boolean).join(" ");
}

/** The notes, without the sentence that a limit has just said. */
function unsaid({ notes, steps }) {
  const isHeld = steps.some((step) => step.name === "hold_stale");
  const sentences = notes.map(plain);
  return isHeld ? sentences.map((note) => note.replace(/^(metrics are older than .*): they lower nothing until (they are fresh|fresh ones arrive)$/, "$1")) : sentences;
}

/** The sum behind warm workers, in words. */
function plain(note) {
  return note.replace(
    /^keep (\d+) workers? warm \((\w+)\): start-up ([\d.]+) s \+ tick ([\d.]+) s > ([\d.]+) s$/,
    (_, workers, key, startUp, tick, target) =>
      `a worker takes ${duration(Number(startUp))} to start, and a decision up to ${duration(Number(tick))}: together longer than the objective's ${duration(Number(target))}, so a job that finds no worker starts late unless ${key} is at least ${workers}`,
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
  work_in_progress: "running jobs",
  backlog_drain: "starting all waiting jobs in time",
  wake: "waking from zero",
  due_work: "jobs that are due soon",
  standing: "pre-warmed workers",
  rhythm: "repeating bursts",
  steady_state: "keeping up with arrivals",
  trend: "rising arrivals",
  forecast: "forecast arrivals",
  saturation: "every worker is busy",
  hold_stale: "stale or inexact metrics",
  hold_up: "delay before scaling up",
  hold_overdue: "an overdue job",
  useful_workers: "workers that get jobs",
  plateau: "jobs waiting beside idle workers",
  hold_down: "delay before scaling down",
  tolerance: "too small a change",
  anti_flapping: "anti-flapping",
  crash_loop: "crash loop",
  may_be_busy: "workers that may be busy",
  activation: "too few jobs to wake for",
  override: "manual override",
  workers_min: "profile's minimum",
  workers_max: "profile's maximum",
  capacity: "capacity of the hosts",
  share: "share of scarce capacity",
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
  const sentence = DEMANDS[greatest.name];
  return sentence ? sentence(greatest.slots, totals(decision)) : `“${named(greatest.name)}” asks for ${slots(greatest.slots)}.`;
}

function nothingToDo(decision) {
  const seen = totals(decision);
  if (!decision.is_fresh || seen.waiting_jobs === null) return "";
  if (seen.waiting_jobs) return `${waiting(seen)}, and no demand is above zero.`;
  return seen.arrival_rate_per_s === 0 && seen.waiting_jobs === 0 ? "Nothing waits and nothing arrives." : `${waiting(seen)}.`;
}

const slots = (value) => `${decimal(value)} ${value === 1 ? "job" : "jobs"} at a time`;

const DEMANDS = {
  work_in_progress: (value, seen) => `${waiting(seen)}: running and starting workers for ${slots(value)} are enough.`,
  backlog_drain: (value, seen) => `${waiting(seen)}: starting them all in time takes workers for ${slots(value)}.`,
  wake: (value, seen) => `${waiting(seen)}, and no worker runs: a first worker starts, for ${slots(value)}.`,
  due_work: (value) => `Jobs are due soon: starting them in time takes workers for ${slots(value)}.`,
  standing: (value) =>
    `A worker that starts now is too late for the next jobs: workers for ${slots(value)} must be pre-warmed.`,
  rhythm: (value) =>
    `Bursts repeat with short pauses: keeping workers for ${slots(value)} starts every job in time and costs less than new starts.`,
  steady_state: (value, seen) =>
    `Jobs arrive at ${rate(seen.arrival_rate_per_s)} and take ${duration(seen.service_time_s)} each: that is ${slots(value)}.`,
  trend: (value, seen) =>
    `Arrivals are rising from ${rate(seen.arrival_rate_per_s)}: when a new worker is ready, that will be ${slots(value)}.`,
  forecast: (value) => `The forecast for the time when a new worker is ready is ${slots(value)}.`,
  saturation: (value) => `Every worker is busy, and the strategy then adds one: ${slots(value)}.`,
  smoother: (value) => `While throughput is steady, the strategy scales down one by one, now to ${slots(value)}.`,
  first_worker: (value, seen) => `${waiting(seen)}, and no worker runs: a first worker, for ${slots(value)}.`,
  jobs_per_worker: (value, seen) => `${waiting(seen)}: the strategy's workers for this many jobs have ${slots(value)}.`,
  balance: (value) => `The strategy's balance of the queues is at ${slots(value)}.`,
  fixed: (value) => `The profile's floor is ${slots(value)}.`,
  time_of_day: (value) => `The workers for this hour have ${slots(value)}.`,
};

function waiting(seen) {
  const running = (seen.in_flight_jobs ?? 0) - (seen.reserved_jobs ?? 0);
  const reserved = seen.reserved_jobs ? ` and ${count(seen.reserved_jobs)} ${seen.reserved_jobs === 1 ? "is" : "are"} reserved` : "";
  const least = seen.in_flight_min_jobs ? ` and workers have at least ${counted(seen.in_flight_min_jobs, "job")}` : "";
  const inFlight = (running > 0 ? ` and ${count(running)} ${running === 1 ? "runs" : "run"}` : least) + reserved;
  if (seen.waiting_jobs === null && !seen.waiting_min_jobs) return `The number of waiting jobs is unknown${inFlight}`;
  if (seen.waiting_jobs === null) return `At least ${counted(seen.waiting_min_jobs, "job")} ${seen.waiting_min_jobs === 1 ? "waits" : "wait"}${inFlight}`;
  if (!seen.waiting_jobs && least && !seen.reserved_jobs) return `No job waits to be taken${inFlight}, of which some may not have begun`;
  if (!seen.waiting_jobs) return inFlight ? `No job waits${inFlight}` : "No job waits";
  const oldest = seen.oldest_age_s === null ? "" : `, the oldest for ${duration(seen.oldest_age_s)}`;
  return `${counted(seen.waiting_jobs, "job")} ${seen.waiting_jobs === 1 ? "waits" : "wait"}${oldest}${inFlight}`;
}

const LIMITS = {
  failed: (count_) => `A figure of the pool is no finite number, so its workers stay: held at ${count_}.`,
  hold_stale: (count_, decision) => `${unread(decision)}, so the count does not fall: held at ${count_}.`,
  tolerance: (count_) => `The change is too small: held at ${count_}.`,
  useful_workers: (count_) => `Its brokers give the jobs of its queues to ${counted(count_, "worker")} at a time: more would only wait.`,
  hold_up: (count_) => `More are needed, but not yet for long enough: ${count_} for now.`,
  hold_overdue: (count_) => `A waiting job has no time left, so no worker leaves: held at ${count_}.`,
  hold_down: (count_) => `Fewer would be enough now, but not yet for long enough: held at ${count_}.`,
  cooldown: (count_) => `The strategy's cooldown allows no change yet: held at ${count_}.`,
  anti_flapping: (count_) => `The strategy turns only after its cooldown and scales down by a share at a time: ${count_} for now.`,
  step: (count_) => `The profile's steps lead to ${count_} for now.`,
  crash_loop: (count_) => `Its workers crash on every host: no more than ${count_} until one stays up.`,
  plateau: (count_) => `Jobs wait beside idle workers, so ${count_} for now: more start no more jobs, or are being measured.`,
  may_be_busy: (count_) => `Workers that may be busy are kept: ${count_} for now. They leave one at a time.`,
  activation: () => "Too few jobs wait to wake the pool from zero: no worker starts yet.",
  fallback: (count_) => `Metrics have been missing for long: the fallback is ${count_}.`,
  pause: (count_) => `An operator has paused the pool: held at ${count_}.`,
  suspended: (count_) => `Its workers are kept from taking jobs, so none is started: held at ${count_}.`,
  override: (count_) => `An operator has set an override of ${count_}.`,
  schedule: (count_) => `A schedule sets ${count_}.`,
  workers_min: (count_) => `The profile keeps at least ${count_}.`,
  workers_max: (count_, decision) => {
    const others = [];
    if (decision.unknown_workers) others.push(`${counted(decision.unknown_workers, "worker")} may still run on unreachable hosts`);
    if (decision.leaving_workers) others.push(`${counted(decision.leaving_workers, "worker")} asked to stop have not ended yet`);
    return others.length
      ? `The profile's ceiling leaves ${count_}, since ${others.join(" and ")}.`
      : `The profile allows at most ${count_}.`;
  },
  pinned: (count_) => `The pool is pinned to ${count_}.`,
  rate_limit: (count_) => `The rate limit allows ${count_}.`,
  budget: (count_) => `The budget pays for ${count_}.`,
  share: (count_) => `Capacity is scarce: the pool's share is ${count_}.`,
  capacity: (count_, decision) =>
    decision.notes.some((note) => note.startsWith("no known host")) ? `Held at ${count_}.` : `The hosts have capacity for ${count_}.`,
};

/** Why nothing goes down by these metrics. */
function unread({ is_fresh, metrics }) {
  if (!is_fresh) return "Metrics are stale";
  if (metrics.some((queue) => queue.waiting_jobs === null && queue.waiting_min_jobs !== null)) return "How many jobs wait is known only as a lower bound";
  return "A queue has not been read for more than 6 s";
}

/** One sentence for each limit that changed the count, in their order. */
function held(decision) {
  return moves(decision)
    .slice(1)
    .map((step) => {
      const sentence = LIMITS[step.name];
      return sentence ? sentence(step.workers, decision) : `The limit “${words(step.name)}” leaves ${step.workers}.`;
    });
}

function sentence(note) {
  const text = note.charAt(0).toUpperCase() + note.slice(1);
  return text.endsWith(".") ? text : `${text}.`;
}

/** The pool's queues that were ever read together: counts and rates add, times are the greatest. */
function totals(decision) {
  const queues = decision.metrics.filter((queue) => queue.sampled_at_s !== null);
  const all = (name) => queues.map((queue) => queue[name] ?? null).filter((value) => value !== null);
  const sum = (name) => (all(name).length ? all(name).reduce((one, other) => one + other, 0) : null);
  const exact = (name) => (all(name).length === queues.length ? sum(name) : null);
  const atLeast = (name, bound) =>
    exact(name) === null ? queues.reduce((total, queue) => total + (queue[name] ?? queue[bound] ?? 0), 0) : null;
  const most = (name) => (all(name).length ? Math.max(...all(name)) : null);
  return {
    waiting_jobs: exact("waiting_jobs"),
    waiting_min_jobs: atLeast("waiting_jobs", "waiting_min_jobs"),
    in_flight_jobs: exact("in_flight_jobs"),
    in_flight_min_jobs: atLeast("in_flight_jobs", "in_flight_min_jobs"),
    reserved_jobs: sum("reserved_jobs"),
    oldest_age_s: most("oldest_age_s"),
    arrival_rate_per_s: sum("arrival_rate_per_s"),
    service_time_s: most("service_time_s"),
  };
}
