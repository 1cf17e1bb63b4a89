// Numbers as people read them. What is not known is called unknown and is never 0.

export const UNKNOWN = "unknown";

// Made once: toLocaleString makes one for each number, which with hundreds of rows takes most of the time.
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const THOUSANDS = new Intl.NumberFormat("en", { notation: "compact" });
const THOUSANDTHS = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const TENTHS = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** Whether a value is known. */
export const known = (value) => value !== null && value !== undefined;

/** A count of things. */
export function count(value) {
  return known(value) ? WHOLE.format(Math.round(value)) : UNKNOWN;
}

/** A count where there is little room: 250K. */
export function short(value) {
  return value >= 100_000 ? THOUSANDS.format(value) : count(value);
}

/** "1 job", "2 jobs". */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** A number with as many digits as mean something. */
export function decimal(value) {
  if (!known(value)) return UNKNOWN;
  if (value === 0 || Math.abs(value) >= 100) return count(value);
  return (Math.abs(value) < 10 ? TENTHS : WHOLE).format(value);
}

/** A duration in seconds. */
export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds === 0) return "0 s";
  if (seconds < 0.1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1).replace(".0", "")} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** How long ago, in whole steps, for ages that tick on. */
export function ago(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds < 2) return "just now";
  return `${seconds < 120 ? `${Math.floor(seconds)} s` : duration(seconds)} ago`;
}

/** How long the oldest job has waited at `now_s`: waiting goes on between readings. */
export function aged({ waiting_jobs, reserved_jobs, oldest_age_s, sampled_at_s }, now_s) {
  if (!(waiting_jobs || reserved_jobs) || !known(oldest_age_s) || !known(sampled_at_s)) return oldest_age_s;
  return oldest_age_s + Math.max(0, now_s - sampled_at_s);
}

/** The jobs that wait in a queue or a pool, and beside them those that workers have reserved and not begun. */
export function waiting({ metrics, isWaitKnown }) {
  const reserved = metrics.reserved_jobs ? ` + ${count(metrics.reserved_jobs)} reserved` : "";
  return `${count(metrics.waiting_jobs)}${reserved}${isWaitKnown ? "" : ` + ${UNKNOWN} reserved`}`;
}

/** The age of an oldest job, a lower bound where it is unknown how many jobs wait. */
export function longestWait(seconds, isWaitKnown) {
  if (isWaitKnown) return duration(seconds);
  return seconds ? `at least ${duration(seconds)}` : UNKNOWN;
}

/** The jobs that workers have. */
export function inFlight({ in_flight_jobs, in_flight_min_jobs }) {
  return !known(in_flight_jobs) && in_flight_min_jobs ? `at least ${count(in_flight_min_jobs)}` : count(in_flight_jobs);
}

/** Jobs per second, or per minute where that is easier to read. */
export function rate(perSecond) {
  if (!known(perSecond)) return UNKNOWN;
  if (perSecond > 0 && perSecond < 0.5) return `${decimal(perSecond * 60)}/min`;
  return `${decimal(perSecond)}/s`;
}

/** Bytes in binary units. */
export function bytes(value) {
  if (!known(value)) return UNKNOWN;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** The time of day of Unix seconds. */
export function clock(at_s, withSeconds = true) {
  return new Date(at_s * 1000).toLocaleTimeString("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(withSeconds ? { second: "2-digit" } : {}),
  });
}

/** A part of a whole that may be more than all of it. */
export function ratio(value) {
  return known(value) ? `${count(100 * value)} %` : UNKNOWN;
}

/** Whether any queue of a pool has an objective of its own. */
export const hasOwn = (member_objectives) => Object.keys(member_objectives ?? {}).length > 0;

/** The percentile of an objective as it was set: 99.5 is neither 99 nor 100. */
export const percentile = (objective) => THOUSANDTHS.format(objective.percentile);

/** An objective in words. */
export function slo(objective) {
  return `${percentile(objective)} % within ${duration(objective.target_s)}`;
}
