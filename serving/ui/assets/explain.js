// What the model was asked, what it answered, and what the guard did with it.

import { $, capital, fill, h, plain } from "./dom.js";
import { label } from "./path.js";

// What code does to make an answer safe, in words. A name that is not here is shown as words.
const GUARD = {
  safe_line: "The line was not true or not fit to say. A safe line was said instead.",
  degraded: "The answer could not be read. The turn fell back to a safe one.",
  empty_cart: "An order without goods that are sold here became talk.",
  nothing_shown: "Goods that are not sold here were not shown.",
  called_off: "The player called the order off, so the cart was emptied.",
  not_called_off: "Nothing in the player's words calls the order off, so the cart stayed.",
  not_named: "Goods that the player did not name were left out.",
  no_farewell: "The player did not say farewell, so the talk went on.",
  below_nothing: "A bid below nothing became no bid.",
  transition: "This step may not come now. It was held back.",
  asked_order: "The model was unsure about the order, so it asked first.",
  asked_goods: "It was not clear whether these goods were meant, so it asked first.",
  asked_which: "The model was unsure which goods were meant, so it asked first.",
};
const WITHHELD = {
  unreviewed: "no review had been read out", question: "the player asked something",
  refusal: "the player refused", unclear: "not every word agrees to the terms",
  change: "the player changed the order", quote: "the words are somebody else's",
  renewed: "the terms must be read out again", confirmation: "this shop wants a click, not words",
  stock: "somebody else bought it meanwhile", purse: "the purse does not hold enough",
  open: "the line agrees to nothing on the table", transition: "a review must come first",
};
const ROLES = { system: "System", user: "Player and ledger", assistant: "Merchant (earlier)", tool: "Outcome" };

export const guardWords = (name) => GUARD[name] ?? WITHHELD[name] ?? capital(plain(name)) + ".";

export function showExplain(turn) {
  const { explain, answer } = turn ?? {};
  if (!answer) {
    fill($("explain"), h("p", { class: "quiet" }, "Say a line. Then this panel shows the question the model got, its raw answer, and what the guard changed."));
    return;
  }
  fill($("explain"), verdict(answer), explain ? details(explain) : h("p", { class: "quiet" }, "The prompt of this turn is not kept. It is shown for lines said from now on."));
}

function verdict({ interventions = [], withheld, last, state }) {
  const acts = interventions.map((name) => h("li", {}, guardWords(name), " ", h("code", {}, name)));
  if (withheld?.reason) {
    const why = WITHHELD[withheld.reason] ?? plain(withheld.reason);
    acts.unshift(h("li", {}, `The sale stays open: ${why}`, withheld.words ? ` (“${withheld.words}”).` : "."));
  }
  const held = acts.length > 0;
  return h(
    "section", { class: held ? "verdict held" : "verdict passed" },
    h("h3", {}, held ? "The guard stepped in" : "The guard let it pass"),
    h("p", { class: "quiet" }, `${label(last)} → ${label(state)}`),
    held ? h("ul", {}, acts) : h("p", {}, "The step is legal, the numbers are the ledger's, and nothing irreversible happened without the player's own words."),
  );
}

function details({ prompt = [], grammar = "", raw = [], checks = [] }) {
  return [
    part(`1. The model was asked (${prompt.length} messages)`, prompt.map(message)),
    part("2. It was allowed to answer", h("pre", { tabindex: "0", "aria-label": "Grammar" }, shortened(grammar) || "anything: no grammar")),
    part("3. It answered", raw.map((text) => h("pre", { tabindex: "0", "aria-label": "Raw answer" }, pretty(text))), true),
    part("4. Checks", checks.length ? h("ul", {}, checks.map((check) => h("li", {}, capital(plain(check))))) : h("p", {}, "No check failed."), true),
  ];
}

function part(title, content, open = false) {
  return h("details", { open }, h("summary", {}, title), content);
}

function message({ role, content }) {
  return h("div", { class: `message ${role}` }, h("b", {}, ROLES[role] ?? role), h("pre", { tabindex: "0" }, content));
}

const shortened = (text) => (text.length > 4000 ? `${text.slice(0, 4000)}\n… (${text.length} characters)` : text);

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 1).replace(/\[\s+("(?:[^"\\]|\\.)*"),\s+([^[\]\s]+)\s+\]/g, "[$1, $2]");
  } catch {
    return text;
  }
}
