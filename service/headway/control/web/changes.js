// An overview made of the one before and of what has changed since: docs/reference/http-api.md, "Watching".

const KEYS = { pools: "pool", queues: "queue", hosts: "host_id", decisions: "decision_id" };
const GROWING = ["reported_age_s", "sample_age_s", "measured_age_s"];

/** The newer overview. Neither it nor a row of it is the one before, where anything of it differs. */
export function changed(overview, change) {
  const newer = { ...overview, ...change.fields, at_s: change.at_s };
  const grown_s = change.at_s - overview.at_s;
  for (const [name, key] of Object.entries(KEYS)) newer[name] = list(overview[name], change[name] ?? {}, { key, grown_s });
  return newer;
}

function list(rows, { order, rows: whole = [], fields = [] }, { key, grown_s }) {
  const fresh = new Map(whole.map((row) => [row[key], row]));
  const older = order && new Map(rows.map((row) => [row[key], row]));
  const names = order ?? rows.map((row) => row[key]);
  const newer = names.map((name, place) => fresh.get(name) ?? grown(older ? older.get(name) : rows[place], grown_s));
  for (const [change, ranges] of fields) {
    for (let at = 0; at < ranges.length; at += 2) {
      for (let place = ranges[at]; place <= ranges[at + 1]; place += 1) newer[place] = merged(newer[place], change);
    }
  }
  return newer;
}

/** A row whose ages have gone on with the clock. */
function grown(row, grown_s) {
  const aged = { ...row };
  for (const name of GROWING) if (typeof aged[name] === "number") aged[name] += grown_s;
  return aged;
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function merged(row, change) {
  const newer = { ...row };
  for (const [name, value] of Object.entries(change)) {
    newer[name] = isObject(value) && isObject(row[name]) ? merged(row[name], value) : value;
  }
  return newer;
}
