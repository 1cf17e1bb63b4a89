// What is so, in a sentence: the worst first, and nothing better than is known.

import { ago, counted, duration } from "./format.js";
import { statesOf, wordOf } from "./states.js";

const OLD_S = 10; // an age under this is the usual one: pipeline, agents and collectors report at least every few seconds

const isDark = (pool) => ["stale", "unseen"].includes(pool.state);

/** Pools that are late or cannot do their work. */
export const urgent = (pools) => pools.filter((pool) => !isDark(pool) && statesOf("page").includes(pool.state));

/** A pool's name for people: that of its queue, where it has one. */
export const nameOf = (pool) => (pool.queues.length === 1 ? pool.queues[0] : pool.pool);

/** What is under way at this moment; nothing where every pool has what it wants. */
export function doing(pools) {
  const all = (name) => pools.reduce((sum, pool) => sum + pool[name], 0);
  const changes = [
    [all("starting_workers"), "starting"],
    [all("draining_workers"), "finishing a last job"],
    [all("failing_workers"), "failing to start"],
  ];
  return changes
    .filter(([number]) => number > 0)
    .map(([number, what]) => `${counted(number, "worker")} ${what}`)
    .join(", ");
}

/** How many workers run, as far as known: a pool that cannot say is not one with none. */
export function running(pools) {
  const known = pools.map((pool) => pool.running_workers).filter((number) => number !== null);
  if (pools.length && !known.length) return "workers unknown";
  const isPart = known.length < pools.length;
  return `${counted(known.reduce((one, other) => one + other, 0), "worker")}${isPart ? " or more" : ""} running`;
}

/** What is used of each group that a pool is in; with `isBinding`, of those whose cap lowered its count. */
export function groupUses({ groups = [] }, { isBinding = false } = {}) {
  return groups
    .filter((group) => group.is_binding || !isBinding)
    .map((group) => `group ${group.name}: ${group.used} of ${counted(group.cap, group.is_in_slots ? "slot" : "worker")}`);
}

/** How old what a headline rests on is, where that is out of the ordinary. */
function agesOf(pools) {
  const ages = pools.flatMap((pool) => [pool.sample_age_s, pool.measured_age_s]).filter((age_s) => age_s !== null);
  const oldest = Math.max(...ages);
  return ages.length && oldest > OLD_S ? `, as of ${ago(oldest)}` : "";
}

/** Whether a pause keeps the pool's jobs from a first worker: that is no lateness, and not unknown either. */
const isHeld = ({ mode, metrics, running_workers, starting_workers }) =>
  ["pause", "pause_up"].includes(mode) && metrics.waiting_jobs > 0 && running_workers === 0 && starting_workers === 0;

/** What waits for the end of a pause. */
function heldJobs(pools, withAge) {
  if (pools.length > 1) return `${list(pools.map(nameOf))} are paused, and jobs wait`;
  const [{ metrics, sample_age_s }] = pools;
  const oldest = withAge && metrics.oldest_age_s !== null ? `, the oldest for ${duration(metrics.oldest_age_s + (sample_age_s ?? 0))}` : "";
  return `${nameOf(pools[0])} is paused: ${counted(metrics.waiting_jobs, "job")} ${metrics.waiting_jobs === 1 ? "waits" : "wait"}${oldest}`;
}

/** How all objectives stand. `withAge` says how old that is, where it is out of the ordinary. */
export function headline({ pools, queues, health }, { withAge = true } = {}) {
  const restsOn = withAge ? agesOf : () => "";
  if (!pools.length) return queues.length ? "Queues are seen, and none is managed yet" : "Nothing to manage yet";
  const names = (which) => pools.filter((pool) => which.includes(pool.state)).map(nameOf);
  const late = names(["breaching"]);
  if (late.length) return `${list(late)} ${late.length === 1 ? "is" : "are"} late${restsOn(pools.filter((pool) => pool.state === "breaching"))}`;
  for (const state of statesOf("page")) {
    const some = names([state]);
    if (some.length) return `${list(some)}: ${wordOf(state)}${state === "stale" ? ", so nothing is scaled down" : ""}`;
  }
  const unmeasured = pools.filter((pool) => pool.state === "unmeasured");
  const unknown = unmeasured.filter((pool) => !isHeld(pool)).map(nameOf);
  if (unknown.length) return `${list(unknown)}: whether the objective is met is unknown`;
  for (const state of statesOf("ticket")) {
    const some = names([state]);
    if (some.length) return `${list(some)}: ${wordOf(state)}`;
  }
  const near = names(["at_risk"]);
  if (near.length) return `${list(near)} ${near.length === 1 ? "is" : "are"} close to being late`;
  if (unmeasured.length) return heldJobs(unmeasured, withAge);
  const after = names(["recovering"]);
  if (after.length) {
    const isKnown = pools.every((pool) => pool.is_wait_known || pool.state !== "recovering");
    const now = isKnown ? "no job waits too long now" : "whether a job waits too long now is unknown: workers hold jobs that may not have begun";
    return `${list(after)} ${after.length === 1 ? "has" : "have"} been late, and ${now}`;
  }
  const unlisted = names(["unlisted"]);
  if (unlisted.length) return `${list(unlisted)}: ${wordOf("unlisted")}`;
  if (pools.every((pool) => pool.state === "idle")) return `Nothing waits${restsOn(pools)}`;
  // What is wrong with the installation stands below; until it is well, nobody knows that all is. Nor does anybody while
  // workers hold jobs that may not have begun.
  if (health.status !== "ok" || !pools.every((pool) => pool.is_wait_known)) return `Nobody is known to be late${restsOn(pools)}`;
  return `${pools.length === 1 ? "The objective is met" : `All ${pools.length} objectives are met`}${restsOn(pools)}`;
}

function list(names) {
  if (names.length > 3) return `${names.length} pools`;
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
