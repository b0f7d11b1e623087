// Prints every decision of a desk once, also those that were made while it was not connected.
//
//   npm install @nats-io/transport-node
//   node subscribe.mjs nats://127.0.0.1:4222 .deskbus/secrets/user.nk
//
// `deskbus doctor` prints the address; the file's name is the identity: cli or user.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";

const KNOWN_MAX = 1_000; // pipelines' decisions remembered, so that none is printed twice
const [url, seedFile] = process.argv.slice(2);
const identity = basename(seedFile, ".nk");
const seed = new TextEncoder().encode(readFileSync(seedFile, "utf8").trim());

function notTaken(error) {
  console.error(`${url} does not take ${identity}: ${error.message}`);
  process.exit(1);
}

const nats = await connect({
  servers: url,
  authenticator: nkeyAuthenticator(seed),
  inboxPrefix: `_INBOX_${identity}`, // without it no answer arrives
  maxReconnectAttempts: -1,
}).catch(notTaken);

const known = new Set();

function decided(cycleId, pipeline, { decisions }) {
  const key = `${cycleId}/${pipeline}`;
  if (known.has(key)) return; // events come at least once
  known.add(key);
  if (known.size > KNOWN_MAX) known.delete(known.values().next().value);
  const orders = decisions.map((each) => `${each.action} ${each.quantity} ${each.asset}`);
  console.log(key, orders.join(", ") || "nothing to do");
}

// What was missed: a NATS request, answered from the desk's tables, newest first.
async function catchUp() {
  const question = JSON.stringify({ limit: 20 });
  const subject = `desk.v1.qry.console.decisions.${identity}`;
  const page = (await nats.request(subject, question, { timeout: 5_000 })).json();
  for (const each of page.decisions.reverse()) decided(each.cycle_id, each.pipeline, each.decision);
}

async function catchUpAfterEachReconnect() {
  for await (const status of nats.status()) {
    if (status.type !== "reconnect") continue;
    await catchUp().catch((error) => console.error(`not caught up: ${error.message}`));
  }
}

// Hear first, then ask: what is decided in between comes both ways, and is printed once.
const events = nats.subscribe("desk.v1.evt.*.decision.*");
await nats.flush();
await catchUp().catch(notTaken);
catchUpAfterEachReconnect();
console.log("listening");
for await (const message of events) {
  const event = message.json();
  decided(event.cycle_id, event.pipeline, event.data);
}
