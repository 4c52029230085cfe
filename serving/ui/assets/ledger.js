// The counter: the order on the table, the purse, the receipts.

import { $, fill, h, hidden, money } from "./dom.js";
import { icon } from "./icons.js";

const listTotal = (lines) => lines.reduce((sum, line) => sum + line.price * line.quantity, 0);

// `confirmed(review)`: the sale is agreed to. `filled(coins)`: the purse shall hold that much.
export function showLedger(visit, { confirmed, filled }) {
  showCart(visit, confirmed);
  showPurse(visit, filled);
  showReceipts(visit);
}

function row(line, currency) {
  return h(
    "li", {},
    icon(line.item_name, line.item_id),
    h("span", { class: "what" }, h("b", {}, `${line.quantity} ×`), ` ${line.item_name}`),
    h("span", { class: "sum" }, money(line.quantity * line.price), hidden(` ${currency}`)),
  );
}

function showCart(visit, confirmed) {
  const { cart, price, currency, review } = visit;
  const listed = listTotal(cart);
  const agreed = price ?? listed;
  const cut = agreed < listed ? [h("s", {}, hidden("list price "), money(listed)), " "] : [];
  fill(
    $("cart"),
    cart.length ? h("ul", { class: "lines" }, cart.map((line) => row(line, currency))) : h("p", { class: "quiet" }, "Nothing is on the counter yet."),
    cart.length ? h("p", { class: "total" }, h("span", {}, "Total"), h("strong", {}, ...cut, money(agreed, currency))) : "",
    review ? h("button", { type: "button", id: "confirm", class: "primary wide", onclick: () => confirmed(review) }, `Confirm for ${money(agreed, currency)}`) : "",
  );
}

function showPurse({ purse, currency, sales }, filled) {
  const spent = sales.reduce((sum, sale) => sum + sale.price, 0);
  fill(
    $("purse"),
    typeof purse === "number" ? pair(h("label", { for: "coins" }, "Purse"), coins(purse, filled), ` ${currency}`) : "",
    spent ? pair("Spent", money(spent, currency)) : "",
  );
}

const pair = (name, ...amount) => h("div", {}, h("dt", {}, name), h("dd", {}, ...amount));

// An empty purse can be filled: this is a playground.
function coins(purse, filled) {
  const field = h("input", { id: "coins", type: "number", min: "0", step: "any", required: true, value: String(purse) });
  field.onchange = () => (field.reportValidity() ? filled(Number(field.value)) : null);
  return field;
}

function showReceipts({ sales, currency, shop, merchant }) {
  $("receipts").hidden = !sales.length;
  fill(
    $("receipts"),
    sales.map((sale, number) => h(
      "li", { class: "receipt" },
      h("p", { class: "head" }, h("b", {}, merchant), ` · ${shop}`, h("span", {}, `No. ${number + 1}`)),
      h("ul", {}, sale.items.map((line) => h("li", {}, h("span", {}, `${line.quantity} × ${line.item_name}`), h("span", {}, money(line.quantity * line.price))))),
      h("p", { class: "total" }, h("span", {}, "Paid"), h("strong", {}, money(sale.price, currency))),
    )).reverse(),
  );
}
