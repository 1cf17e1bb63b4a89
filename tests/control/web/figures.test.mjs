// Today's figures: a share is never rounded up to all, and a budget never to more than is left.

import assert from "node:assert/strict";
import { test } from "node:test";

import { cordon, condition } from "../../../service/headway/control/web/hosts.js";
import { budget, budgetState, share } from "../../../service/headway/control/web/today.js";

test("99.996 % is not 100 %", () => {
  assert.deepEqual([1, 0.99996, 0.967, 0.88, 0].map(share), ["100 %", "99.99 %", "96.7 %", "88 %", "0 %"]);
});

test("what is left of a budget is rounded down, and one that is spent says how often", () => {
  assert.deepEqual([1, 0.999, 0, -0.5].map(budget), ["100 %", "99 %", "0 %", "spent 1.5 times"]);
});

test("a budget is late once it is spent, nearly late below a quarter, and nothing where nothing was measured", () => {
  assert.deepEqual([-0.01, 0, 0.24, 0.25].map((left) => budgetState(left, 0.9)), ["breaching", "at_risk", "at_risk", "on_time"]);
  assert.equal(budgetState(0.5, null), null);
  assert.equal(budgetState(null, 0.9), null);
});

test("a host has the word and the sentence of the control plane, and a colour by how bad that is", () => {
  const shown = (name, word) => condition({ status: { name, word, meaning: "Why." } });
  assert.deepEqual(shown("connection_lost", "connection lost"), ["connection lost", "stale", "Why."]);
  assert.deepEqual(shown("cannot_write", "cannot write"), ["cannot write", "at_risk", "Why."]);
  assert.deepEqual(shown("drained", "drained"), ["drained", "scaling", "Why."]);
  assert.deepEqual(shown("reporting", "reporting"), ["reporting", "on_time", "Why."]);
});

test("a host that gets nothing new says by whose word and why", () => {
  const said = { state: "cordoned", cordoned_by: "ada", cordoned_until_s: null, cordon_reason: "new kernel" };
  assert.equal(cordon(said), "cordoned by ada: new kernel");
  assert.match(cordon({ ...said, cordoned_until_s: 0 }), /^cordoned by ada until \d\d:\d\d: new kernel$/);
});
