// Buys two ropes: node examples/buy.js http://127.0.0.1:8000

import { Haggle } from "../src/index.js";

const haggle = new Haggle(process.argv[2] ?? "http://127.0.0.1:8000", {
  onWait: (error, seconds) => console.error(`${error.message}; again in ${seconds} s`),
});
const session = await haggle.open({ shop: "frontier_shop" });
for (const line of ["two sturdy ropes, please", "deal", "yes"]) {
  process.stdout.write(`you: ${line}\n${session.visit.merchant}: `);
  const answer = await session.say(line, { onText: (piece) => process.stdout.write(piece) });
  process.stdout.write(`\n     ${answer.last || "start"} -> ${answer.state}\n`);
}
console.log(await session.receipts());
