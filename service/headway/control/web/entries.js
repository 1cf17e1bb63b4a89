// What the table of queues holds: an entry for each pool, with its queues, and for each queue that nobody manages.

import { counted, aged } from "./format.js";
import { byName } from "./find.js";
import { countedAs, counts, urgencyOf } from "./states.js";

/** The entries, in no order. */
export function entriesOf({ pools, queues }) {
  const members = new Map(pools.map((pool) => [pool.pool, []]));
  const unmanaged = [];
  for (const queue of queues) (members.get(queue.pool) ?? unmanaged).push(queue);
  return [
    ...pools.map((pool) => {
      const isSingle = pool.queues.length === 1;
      return { key: `pool ${pool.pool}`, name: isSingle ? pool.queues[0] : pool.pool, pool, members: isSingle ? [] : members.get(pool.pool), metrics: pool.metrics, isWaitKnown: pool.is_wait_known };
    }),
    ...unmanaged.map(({ queue, metrics, is_wait_known: isWaitKnown }) => ({ key: `queue ${queue}`, name: queue, pool: null, members: [], metrics, isWaitKnown })),
  ];
}

/** Every name by which people search an entry. */
export const namesOf = ({ name, pool }) => (pool ? [name, pool.pool, ...pool.queues] : [name]);

/**
 * How long an entry's oldest job has waited. It goes on between readings, but not without end: of a queue that nobody
 * has read for long, the last reading is all that is known.
 */
export function oldestOf({ pool, metrics }, now_s) {
  return isOld(pool) ? metrics.oldest_age_s : aged(metrics, now_s);
}

/** The part of the objective of its own queue that a wait takes: 1 is all of it. 0 where no wait is known. */
export const usedOf = (wait) => (wait && wait.wait_s !== null ? wait.wait_s / wait.objective.target_s : 0);

/** Whether the queues of a pool were last read long ago; it may be late all the same. */
const isOld = (pool) => pool?.has_fresh_depths === false;

/** How much attention an entry needs: a queue without a profile needs the least. */
const rank = ({ pool }) => (pool ? urgencyOf(pool.state) : -1);

const VALUES = {
  state: rank,
  waiting: ({ metrics }) => metrics.waiting_jobs,
  oldest: oldestOf,
  flight: ({ metrics }) => metrics.in_flight_jobs,
  pickup: ({ metrics }) => metrics.pickup_objective_s,
  workers: ({ pool }) => pool?.running_workers,
};

/** Greatest first, unknown last, and by name among equals; by the column `name`, by name alone. */
export function compared(column, now_s) {
  if (column === "name") return (one, other) => byName(one.name, other.name);
  const value = (entry) => VALUES[column](entry, now_s) ?? -Infinity;
  // Two unknown ones differ by NaN, which is no difference either.
  return (one, other) => value(other) - value(one) || byName(one.name, other.name);
}

/** How many are late, always, and how many are in another state that is counted. */
export function tally(entries) {
  const managed = entries.filter((entry) => entry.pool);
  const all = (words) => managed.filter((entry) => countedAs(entry.pool.state) === words).length;
  const [first, ...others] = counts();
  const free = entries.length - managed.length;
  return [
    managed.length && `${all(first)} of ${managed.length} ${first}`,
    ...others.map((words) => all(words) && `${all(words)} ${words}`),
    free && `${counted(free, "queue")} without a profile`,
  ]
    .filter(Boolean)
    .join(" · ");
}
