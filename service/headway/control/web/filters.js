// What a page is narrowed by: fields above it, whose values are in the address.

import { parameter, setParameters } from "./address.js";
import { el } from "./dom.js";

/**
 * A form named `label` of `fields`: {name, label, options} or {name, label, ...attributes of an input}. `changed()` follows
 * each change; going back in the browser undoes it.
 */
export function filterForm(label, fields, changed) {
  const field = ({ name, label: text, options, ...attributes }) => {
    const id = `filter-${name}`;
    const element = options ? el("select", { id }, ...options.map(([value, words]) => el("option", { value }, words))) : el("input", { id, autocomplete: "off", ...attributes });
    element.value = parameter(name) ?? (options ? options[0][0] : "");
    element.addEventListener("change", () => {
      setParameters({ [name]: element.value || null }, { isStep: true });
      changed();
    });
    return el("div", {}, el("label", { for: id }, text), element);
  };
  const form = el("form", { class: "filters", "aria-label": label }, ...fields.map(field));
  form.addEventListener("submit", (event) => event.preventDefault()); // Enter would load the page anew
  return form;
}
