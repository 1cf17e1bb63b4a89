// The words for a pool's state, and what each means.

/** A state in a word or two. */
export const STATES = {
  on_time: "on time",
  idle: "idle",
  scaling: "scaling",
  at_risk: "nearly late",
  recovering: "was late",
  unmeasured: "not measured",
  breaching: "late",
  crash_loop: "crash loop",
  failing: "failing",
  no_host: "no host",
  suspended: "suspended",
  bottleneck: "bottleneck",
  stale: "no fresh data",
  unseen: "not seen yet",
  unmanaged: "no profile",
};

/** What is then so. */
export const MEANINGS = {
  on_time: "Nothing waits longer than the objective, and what started lately had not.",
  idle: "Nothing waits, no job runs, and none has started lately: there is nothing to measure.",
  scaling: "Workers are being started or let go.",
  at_risk: "The oldest job has waited most of its objective, or workers are missing: hosts have no capacity for them, or do not start them.",
  recovering: "No job is known to wait too long now, but some did within the objective's window.",
  breaching: "The oldest job of a queue has waited longer than that queue's objective allows (breached).",
  unmeasured: "No pickup time was measured within the objective's window.",
  crash_loop: "Workers of its template crash.",
  failing: "More of the jobs that ended fail than the profile's failure limit allows.",
  no_host: "No reachable host can run its workers.",
  suspended: "Its library, or a command that cancelled its consumers, keeps all its workers from taking jobs.",
  bottleneck: "More workers do not start, or do not help: the causes say why.",
  stale: "What is known is old: nothing is lowered until there is something new.",
  unseen: "No collector or sender has reported this queue.",
  unmanaged: "No profile names this queue: it is watched and has no workers of Headway.",
};
