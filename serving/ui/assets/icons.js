// Which drawing an item gets: the nouns of its name, then of its id; a chest where none is known.

import { CONTAINERS, FALLBACK, GLYPHS } from "./glyphs.js";
import { hashed } from "./dom.js";

const BY_WORD = new Map();
for (const [name, { words }] of Object.entries(GLYPHS)) {
  for (const word of words.split(" ")) {
    if (!BY_WORD.has(word)) BY_WORD.set(word, name);
  }
}
const TINTS = [4, 28, 48, 88, 140, 168, 196, 222, 262, 300, 334];

function wordsOf(text) {
  return text.toLowerCase().replace(/\(.*?\)/g, " ").match(/\p{L}+/gu) ?? [];
}

function drawingOf(word) {
  const singular = [word, word.replace(/ies$/, "y"), word.replace(/ves$/, "f"), word.replace(/es$/, ""), word.replace(/s$/, "")];
  return singular.map((form) => BY_WORD.get(form)).find(Boolean);
}

// The last noun of a name says what it is: a "Brass Oil Lamp" is a lamp.
function lastKnown(words) {
  return [...words].reverse().map(drawingOf).find(Boolean);
}

export function glyphName(itemName, itemId = "") {
  const [head, ...held] = itemName.toLowerCase().split(/ of | with /);
  const headWords = wordsOf(head);
  const inside = lastKnown(wordsOf(held.join(" ")));
  const last = headWords.at(-1) ?? "";
  if (inside && CONTAINERS.has(last)) return inside;
  return lastKnown(headWords) ?? inside ?? lastKnown(wordsOf(itemId.replaceAll("_", " "))) ?? FALLBACK;
}

// Static strings of this package alone become markup here; names never do.
export function icon(itemName, itemId = "") {
  const holder = document.createElement("span");
  holder.className = "glyph";
  holder.setAttribute("aria-hidden", "true");
  const { svg, hue } = GLYPHS[glyphName(itemName, itemId)];
  holder.style.setProperty("--hue", hue ?? TINTS[hashed(itemName) % TINTS.length]);
  holder.innerHTML = `<svg viewBox="0 0 64 64" focusable="false">${svg}</svg>`;
  return holder;
}
