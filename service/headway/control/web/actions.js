// What people change: every change asks for its reason, how long it holds and a confirmation.

import { el, mark, say } from "./dom.js";
import { whyReadOnly } from "./session.js";
import { askForToken } from "./signin.js";
import { TokenNeeded } from "./stream.js";

const SPANS = [["600", "10 minutes"], ["1800", "30 minutes"], ["3600", "1 hour"], ["14400", "4 hours"], ["86400", "1 day"]];

/** A field for a reason, which the audit log keeps. */
export const reasonField = { name: "reason", label: "Reason, for the audit log", required: true, maxlength: 1000 };

/** A field for how long it holds. With `canStay`, also until somebody ends it. */
export const spanField = ({ canStay = false } = {}) => ({ name: "for_s", label: "Ends by itself after", options: canStay ? [...SPANS, ["", "not: until somebody ends it"]] : SPANS });

/**
 * Buttons for `actions`: {label, title, text, fields, confirm, act(values)}. Who may not change anything sees them disabled,
 * with the reason. `done(action)` follows a change.
 */
export function actionBar(actions, { announce, done }) {
  const note = el("p", { class: "sub action-note" });
  const buttons = actions.map((action) => {
    const button = el("button", { type: "button", class: "give", disabled: true }, action.label);
    button.addEventListener("click", () => ask(action, { announce, done }));
    return button;
  });
  whyReadOnly().then((why) => {
    say(note, why);
    for (const button of buttons) {
      mark(button, "disabled", why !== null);
      mark(button, "title", why);
    }
  });
  return el("div", { class: "actions" }, ...buttons, note);
}

/** Ask for what an action needs, and do it once that is confirmed. */
export function ask({ title, text, fields = [], confirm, act, label }, { announce, done }) {
  const problem = el("div", { class: "problem", role: "alert" });
  const go = el("button", { type: "submit" }, confirm ?? label);
  const cancel = el("button", { type: "button", class: "second" }, "Cancel");
  const form = el("form", {}, el("h2", { id: "action-title" }, title), el("p", {}, text), ...fields.flatMap(field), problem, el("div", { class: "row" }, go, cancel));
  const dialog = el("dialog", { class: "action", "aria-labelledby": "action-title" }, form);
  cancel.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    problem.replaceChildren();
    try {
      const values = Object.fromEntries(new FormData(form));
      await act(values).catch(async (error) => {
        if (!(error instanceof TokenNeeded)) throw error;
        await askForToken();
        return act(values);
      });
      dialog.close();
      announce(`${title}: done`);
      done?.();
    } catch (error) {
      problem.replaceChildren(...refusal(error));
    }
    go.disabled = false;
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** What a refusal says, rule by rule. */
export function refusal(error) {
  const text = error instanceof TypeError ? "The control plane does not answer: nothing is known to have changed." : error.message;
  return error.breaches?.length ? [el("ul", {}, ...error.breaches.map((breach) => el("li", {}, breach)))] : [el("p", {}, text)];
}

function field({ name, label, options, ...attributes }) {
  const id = `action-${name}`;
  const input = options ? el("select", { id, name }, ...options.map(([value, text]) => el("option", { value }, text))) : el("input", { id, name, autocomplete: "off", ...attributes });
  return [el("label", { for: id }, label), input];
}
