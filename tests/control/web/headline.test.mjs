// What the dashboard says first: nothing better than is known.

import assert from "node:assert/strict";
import { test } from "node:test";

import { groupUses, headline } from "../../../service/headway/control/web/headline.js";
import { learn } from "../../../service/headway/control/web/states.js";

learn({ states: [{ state: "unlisted", word: "not found yet", severity: "note" }, { state: "breaching", word: "late", severity: "page" }] });

const pool = (name, state) => ({ pool: name, queues: [name], state, is_wait_known: true, sample_age_s: null, measured_age_s: null });
const said = (...pools) => headline({ pools, queues: [], health: { status: "ok" } });

test("a pool of which no queue was ever found meets no objective, and is not idle", () => {
  assert.equal(said(pool("mail", "unlisted")), "mail: not found yet");
  assert.equal(said(pool("mail", "unlisted"), pool("news", "idle")), "mail: not found yet");
  assert.equal(said(pool("mail", "unlisted"), pool("news", "on_time")), "mail: not found yet");
  assert.equal(said(pool("mail", "unlisted"), pool("news", "breaching")), "news is late");
});

test("a group of a pool is shown with what all its pools use of the cap", () => {
  const database = { name: "database", cap: 40, is_in_slots: false, used: 31, is_binding: true };
  const licences = { name: "licences", cap: 1, is_in_slots: true, used: 1, is_binding: false };
  const groups = [database, licences];
  assert.deepEqual(groupUses({ groups }), ["group database: 31 of 40 workers", "group licences: 1 of 1 slot"]);
  assert.deepEqual(groupUses({ groups }, { isBinding: true }), ["group database: 31 of 40 workers"]);
  assert.deepEqual(groupUses({}), []);
});
