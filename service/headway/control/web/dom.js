// Elements made and kept: what is on the page stays where it is, and only what differs is touched.

const SVG = "http://www.w3.org/2000/svg";

// What directs or hides text: in a name that somebody sent it would forge what people read.
const UNPRINTED = /[^\P{C}\n\t]|[\u2028\u2029]/gu;

export const $ = (id) => document.getElementById(id);

/** `value` as people may read it: a character that is not printed is written as its code. */
export function printable(value) {
  return String(value).replace(UNPRINTED, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

/** An element with attributes and children; text children are text, never markup. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : printable(value));
    }
  }
  const present = children.filter((child) => child !== null && child !== undefined);
  element.append(...present.map((child) => (child instanceof Node ? child : printable(child))));
  return element;
}

/** Set an element's text, if it differs. */
export function say(element, text) {
  const shown = printable(text ?? "");
  if (element.textContent !== shown) element.textContent = shown;
}

/** Set an attribute, if it differs; null takes it away. */
export function mark(element, name, value) {
  if (value === null || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== printable(value)) element.setAttribute(name, printable(value));
}

/**
 * Make the children of `parent` those of `items`, in order. A child is made once for each key and then updated, so
 * that focus, selection and what is unfolded stay.
 */
export function keep(parent, items, key, make, update) {
  const present = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = present.get(name);
    if (child) {
      present.delete(name);
    } else {
      child = make(item);
      child.dataset.key = name;
    }
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of present.values()) child.remove();
  // An element that is moved loses the focus.
  if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

/** The element inside `parent` that carries `data-part="name"`. */
export function part(parent, name) {
  return parent.querySelector(`[data-part="${name}"]`);
}
