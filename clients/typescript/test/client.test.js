// Against a real server, whose address is in HAGGLE_URL: tests/clients/test_clients.py starts it with
// an engine that says OFFER, REVIEW and SALE over and over.

import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { test } from "node:test";

import { Haggle, HaggleError, Unreachable } from "../src/index.js";

const url = process.env.HAGGLE_URL;
const options = { skip: url ? false : "HAGGLE_URL names no server" };
const LINES = ["two sturdy ropes", "deal", "yes"];

test("a purchase, streamed", options, async () => {
  const session = await new Haggle(url).open({ shop: "frontier_shop", player: "ts" });
  let words = "";
  let decided = null;
  const offer = await session.say(LINES[0], { explain: true, onText: (piece) => { words += piece; }, onState: (decision) => { decided = decision; } });
  assert.equal(offer.state, "OFFER_SELL");
  assert.equal(decided.state, "OFFER_SELL");
  assert.ok(words.length > 0 && offer.explain.prompt.length > 0);
  await session.say(LINES[1]);
  const sold = await session.say(LINES[2]);
  assert.equal(sold.sale.items[0].quantity, 2);
  assert.equal((await session.receipts()).length, 1);
  assert.equal((await session.turns()).length, 3);
  await session.close();
});

test("a session goes on by its id, and a button closes the sale", options, async () => {
  const haggle = new Haggle(url);
  const first = await haggle.open();
  await first.say(LINES[0]);
  await first.say(LINES[1]);
  const again = await haggle.resume(first.id);
  assert.ok(again.visit.review);
  const sold = await again.confirm();
  assert.ok(sold.sale);
  const next = await haggle.open(); // the engine's third answer is spent on another line
  await next.say(LINES[2]);
});

test("what is refused says where and what to do", options, async () => {
  await assert.rejects(new Haggle(url).open({ shop: "frontier_shpo" }), (error) => {
    assert.ok(error instanceof HaggleError);
    assert.equal(error.status, 404);
    assert.match(error.hint, /frontier_shop/);
    return true;
  });
});

test("a line is not said twice when the connection breaks before its answer", options, async () => {
  const { proxy, address } = await breaking(url);
  const haggle = new Haggle(address);
  const session = await haggle.open();
  const answer = await session.say(LINES[0]);
  assert.ok(answer.say.length > 0);
  assert.equal((await session.turns()).length, 1);
  proxy.close();
});

test("nobody there: told after the tries", async () => {
  const waits = [];
  const haggle = new Haggle("http://127.0.0.1:9", { tries: 2, onWait: (_, seconds) => waits.push(seconds) });
  await assert.rejects(haggle.shops(), Unreachable);
  assert.deepEqual(waits, [0.5]);
});

// A proxy that breaks the first turn's answer after the server has given it whole.
async function breaking(target) {
  let broken = false;
  const proxy = createServer((incoming, outgoing) => {
    const onward = request(target + incoming.url, { method: incoming.method, headers: incoming.headers }, (response) => {
      const isTurn = incoming.method === "POST" && incoming.url.endsWith("/turns");
      if (isTurn && !broken) {
        broken = true;
        outgoing.writeHead(200, { "Content-Type": "text/event-stream" });
        outgoing.write("event: text\ndata: {\"text\": \"half a\"}\n\n");
        response.on("data", () => {});
        response.on("end", () => outgoing.destroy());
        return;
      }
      outgoing.writeHead(response.statusCode, response.headers);
      response.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
  return { proxy, address: `http://127.0.0.1:${proxy.address().port}` };
}
