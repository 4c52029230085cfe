// Small helpers: elements, numbers, words.

export const $ = (id) => document.getElementById(id);

// An element: h("button", {class: "x", onclick: f, "aria-label": "..."}, "text", child)
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && typeof value !== "string") made[name] = value;
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export const hidden = (text) => h("span", { class: "unseen" }, text);

export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter(Boolean));
}

// A number that stays the same for a text, from 0 up (FNV-1a).
export function hashed(text) {
  let hash = 2166136261;
  for (const letter of text) hash = Math.imul(hash ^ letter.codePointAt(0), 16777619);
  return hash >>> 0;
}

const AMOUNT = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

export function money(amount, currency = "") {
  return `${AMOUNT.format(amount)} ${currency}`.trim();
}

// OFFER_SELL, AskName and safe_line as words: "offer sell", "ask name", "safe line".
export function plain(name) {
  const words = name.replace(/^(Agent|User)\./, "").replaceAll("_", " ");
  const spaced = /[a-z]/.test(words) ? words.replace(/([a-z])([A-Z])/g, "$1 $2") : words;
  return spaced.toLowerCase();
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
