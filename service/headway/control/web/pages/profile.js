// One pool's controls and its profile: scale for a while, pause, restart, and an editor that shows what would change.

import { actionBar, ask, reasonField, refusal, spanField } from "../actions.js";
import { link } from "../address.js";
import { el, say } from "../dom.js";
import { clock, slo } from "../format.js";
import { heading, Loading, table } from "../loading.js";
import { account, readOnly, send } from "../session.js";
import { setFor } from "./profiles.js";

export const page = {
  render(root, context) {
    const { name } = context.parameters;
    const head = heading(name);
    const editor = new Editor(name, context);
    root.append(head);
    const rest = el("div", {});
    const loading = new Loading(root, {
      hides: [rest],
      read: () => context.read(`v1/profiles/${encodeURIComponent(name)}`),
      every_ms: 5_000,
      show(stored) {
        const until = stored.override?.until_s ?? stored.pause_until_s;
        const why = stored.override?.reason ?? stored.pause_reason;
        const held = setFor(stored);
        say(head.lastChild, `${slo(stored.profile.objective)} · ${stored.profile.workers_min} to ${stored.profile.workers_max} workers${held ? ` · set: ${held}${until ? ` until ${clock(until)}` : ""}${why ? ` (${why})` : ""}` : ""}`);
        editor.take(stored);
      },
    });
    rest.append(
      actionBar(actions(name), { announce: context.announce, done: () => loading.again() }),
      el("p", { class: "sub" },
        el("a", { href: link("/pools", name) }, "This pool over time"), " · ",
        el("a", { href: link("/decisions", null, { pool: name }) }, "Decisions on this pool"),
      ),
      editor.element,
    );
    root.append(rest);
    return loading;
  },
};

function actions(name) {
  const path = `v1/pools/${encodeURIComponent(name)}`;
  return [
    {
      label: "Scale",
      title: `Scale ${name} for a while`,
      text: "This many workers until it ends. The profile's bounds, the budget and the hosts' capacity still hold.",
      fields: [{ name: "workers", label: "Workers", type: "number", min: 0, max: 10000, required: true }, spanField(), reasonField],
      act: ({ workers, for_s, reason }) => send("PUT", `${path}/override`, { workers: Number(workers), for_s: Number(for_s), reason }),
    },
    { label: "End the scaling", title: `Leave ${name} to deciding again`, text: "Ends a count that somebody has set. Where there is none, nothing changes.", confirm: "End it", act: () => send("DELETE", `${path}/override`) },
    {
      label: "Pause",
      title: `Pause ${name}`,
      text: "Its last target is kept, whatever waits.",
      fields: [{ name: "mode", label: "What is paused", options: [["pause", "both directions"], ["pause_up", "scaling up"], ["pause_down", "scaling down"]] }, spanField({ canStay: true }), reasonField],
      act: ({ mode, for_s, reason }) => send("PUT", `${path}/pause`, { mode, reason, ...(for_s ? { for_s: Number(for_s) } : {}) }),
    },
    { label: "Resume", title: `Resume ${name}`, text: "It goes by its profile's mode again. Where it is not paused, nothing changes.", act: () => send("DELETE", `${path}/pause`) },
    { label: "Restart", title: `Restart ${name}`, text: "Every worker is replaced, one by one on a host and host by host; an old one leaves when its replacement runs.", fields: [reasonField], act: ({ reason }) => send("POST", `${path}/restart`, { reason }) },
  ];
}

/** The profile as text. A change is checked by the control plane, and shown before it is made. */
class Editor {
  #name;
  #context;
  #stored = null;
  #text = el("textarea", { id: "profile-text", spellcheck: "false", rows: 24, readonly: true });
  #check = el("button", { type: "button", class: "give", disabled: true }, "Check the change");
  #undo = el("button", { type: "button", class: "give", disabled: true }, "Undo");
  #note = el("p", { class: "sub", role: "status" });
  #problem = el("div", { class: "problem", role: "alert" });

  constructor(name, context) {
    [this.#name, this.#context] = [name, context];
    this.element = el("section", {}, el("h2", {}, el("label", { for: "profile-text" }, "Profile, as JSON")), this.#text, this.#problem, el("div", { class: "actions" }, this.#check, this.#undo, this.#note));
    this.#text.addEventListener("input", () => this.#changed());
    this.#check.addEventListener("click", () => this.#review());
    this.#undo.addEventListener("click", () => this.#reset(this.#stored));
    account().then((who) => {
      const why = readOnly(who);
      this.#text.readOnly = why !== null;
      say(this.#note, why);
    }, () => {});
  }

  /** What is stored now. What somebody is typing stays, and is checked against the version that it began with. */
  take(stored) {
    if (this.#stored === null || (!this.#isEdited && stored.version !== this.#stored.version)) return this.#reset(stored);
    if (stored.version !== this.#stored.version) say(this.#note, `Version ${stored.version} was made meanwhile: undo to begin with it.`);
  }

  get #isEdited() {
    return this.#text.value !== written(this.#stored.profile);
  }

  #reset(stored) {
    this.#stored = stored;
    this.#text.value = written(stored.profile);
    this.#problem.replaceChildren();
    this.#changed();
  }

  #changed() {
    this.#check.disabled = this.#undo.disabled = !this.#isEdited;
  }

  async #review() {
    this.#problem.replaceChildren();
    let profile;
    try {
      profile = JSON.parse(this.#text.value);
    } catch (error) {
      return this.#problem.replaceChildren(el("p", {}, `Not JSON: ${error.message}`));
    }
    const path = `v1/profiles/${encodeURIComponent(this.#name)}`;
    const version = { "If-Match": `"${this.#stored.version}"` };
    try {
      const tried = await send("PUT", `${path}?dry_run=true`, profile, version);
      if (!tried.changes.length) return say(this.#note, "This is the same profile: nothing would change.");
      this.#confirm(tried, () => send("PUT", path, profile, version));
    } catch (error) {
      this.#problem.replaceChildren(...refusal(error));
    }
  }

  #confirm(tried, put) {
    const diff = table("What changes", ["Key", "Before", "After"], tried.changes.map((each) => [each.key, el("del", {}, brief(each.before)), el("ins", {}, brief(each.after))]));
    const notes = tried.notes.length ? el("ul", { class: "reasons" }, ...tried.notes.map((note) => el("li", {}, note))) : null;
    ask(
      { title: `Change the profile of ${this.#name}`, text: el("span", {}, diff, notes, el("span", { class: "sub" }, "It holds until somebody changes it again; the audit log keeps what was before.")), confirm: "Change it", act: async () => (this.stored = await put()) },
      { announce: this.#context.announce, done: () => this.#reset(this.stored) },
    );
  }
}

/** The profile without what is not set: what is left out has its default. */
const written = (profile) => JSON.stringify(Object.fromEntries(Object.entries(profile).filter(([, value]) => value !== null)), null, 2);

const brief = (value) => (value === null ? "not set" : typeof value === "string" ? value : JSON.stringify(value));
