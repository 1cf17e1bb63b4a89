// What directs or hides text is shown as its code, on every way into the page: a name could forge what people read.

import assert from "node:assert/strict";
import { test } from "node:test";

import { el, mark, printable, say } from "../../../service/headway/control/web/dom.js";

// U+202E in the name of a queue turned what follows it around.
const FORGED = "mail\u202egnp.exe\u2066\u200b\x1b[31m\u2028";
const PRINTED = String.raw`mail\u{202e}gnp.exe\u{2066}\u{200b}\u{1b}[31m\u{2028}`;

/** An element of a page, as far as the module uses it. */
globalThis.Node = class {
  #attributes = new Map();
  #children = [];

  setAttribute(name, value) {
    this.#attributes.set(name, String(value));
  }

  getAttribute(name) {
    return this.#attributes.get(name) ?? null;
  }

  removeAttribute(name) {
    this.#attributes.delete(name);
  }

  append(...children) {
    this.#children.push(...children);
  }

  get textContent() {
    return this.#children.map((child) => child.textContent ?? child).join("");
  }

  set textContent(text) {
    this.#children = [text];
  }
};
globalThis.document = { createElement: () => new Node() };

test("what directs or hides text is shown as its code", () => {
  assert.equal(printable(FORGED), PRINTED);
});

test("an element is made with text and attributes as they may be read", () => {
  const shown = el("p", { title: FORGED }, FORGED, el("b", {}, FORGED), null, undefined);
  assert.equal(shown.textContent, PRINTED + PRINTED);
  assert.equal(shown.getAttribute("title"), PRINTED);
  assert.equal(el("p", {}, "Grüße, 日本語 🙂", 7, 0, "").textContent, "Grüße, 日本語 🙂70");
});

test("an attribute that is true is there, one that is false or unknown is not", () => {
  const shown = el("p", { hidden: true, title: null, open: false });
  assert.deepEqual(["hidden", "title", "open"].map((name) => shown.getAttribute(name)), ["", null, null]);
});

test("text and attributes that change later are shown as they may be read", () => {
  const shown = el("p");
  say(shown, `second ${FORGED}`);
  mark(shown, "data-name", FORGED);
  assert.equal(shown.textContent, `second ${PRINTED}`);
  assert.equal(shown.getAttribute("data-name"), PRINTED);
  say(shown, null);
  mark(shown, "data-name", null);
  assert.equal(shown.textContent, "");
  assert.equal(shown.getAttribute("data-name"), null);
});

test("letters of every script, line breaks and numbers are shown as they are", () => {
  assert.equal(printable("Grüße, 日本語 🙂\n\t"), "Grüße, 日本語 🙂\n\t");
  assert.equal(printable(7), "7");
  assert.equal(printable(0), "0");
});
