// The shelves: drawn goods with price tags, and a card that tells about the chosen one.

import { $, fill, h, hidden, money } from "./dom.js";
import { icon } from "./icons.js";

let chosen = null;

// `shelf` as the visit has it; `said(text)` says a line, `typed(text)` puts words into the input.
export function showShelves(shelf, currency, { said, typed }) {
  if (!shelf.some((item) => item.item_id === chosen)) chosen = null;
  fill($("shelves"), shelf.map((item) => ware(item, currency, said, typed)));
  showCard(shelf.find((item) => item.item_id === chosen), currency, said, typed);
}

function ware(item, currency, said, typed) {
  const choose = () => {
    chosen = chosen === item.item_id ? null : item.item_id;
    for (const other of $("shelves").querySelectorAll("button")) {
      other.setAttribute("aria-expanded", String(other.dataset.item === chosen));
    }
    showCard(chosen ? item : null, currency, said, typed);
  };
  const button = h(
    "button",
    { type: "button", class: "ware", onclick: choose, "data-item": item.item_id, "aria-expanded": String(chosen === item.item_id), "aria-controls": "ware-card" },
    icon(item.item_name, item.item_id),
    h("span", { class: "tag" }, money(item.price), hidden(` ${currency}`)),
    h("span", { class: "name" }, item.item_name),
    h("span", { class: "stock" }, hidden("in stock: "), `${item.quantity}`),
  );
  return h("li", { class: item.quantity ? "" : "gone" }, button);
}

function showCard(item, currency, said, typed) {
  const card = $("ware-card");
  card.hidden = !item;
  if (!item) return;
  const facts = item.facts?.length ? h("ul", {}, item.facts.map((fact) => h("li", {}, fact))) : "";
  fill(
    card,
    h("h3", {}, item.item_name),
    h("p", { class: "quiet" }, `${money(item.price, currency)} each, ${item.quantity} in stock`),
    item.description ? h("p", {}, item.description) : "",
    facts,
    h(
      "p", { class: "row" },
      h("button", { type: "button", class: "small", onclick: () => said(`Tell me about the ${item.item_name}.`) }, "Ask about it"),
      h("button", { type: "button", class: "small", onclick: () => typed(`I'd like one ${item.item_name}, please.`) }, "Ask for one"),
    ),
  );
}
