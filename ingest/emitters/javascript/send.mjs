// Shows how a JavaScript program can send telemetry over HTTP: it simulates 100 episodes, and posts each as a batch.
// Needs only Node.js 18 or later. The token is required, because Node sends browser headers, which the service refuses
// without a token.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const service = process.argv[2];
const token = readFileSync(process.env.REWARDWATCH_TOKEN_FILE, "utf8").trim();

/** Sends a batch, and retries until the service has written it. A batch sent again with the same id counts once. */
async function post(id, batch) {
  const body = batch.map((event) => JSON.stringify(event)).join("\n");
  const headers = { "Content-Type": "application/x-ndjson", "Idempotency-Key": id, Authorization: `Bearer ${token}` };
  for (;;) {
    let pause = 1;
    try {
      const signal = AbortSignal.timeout(30_000); // the service responds within 25 seconds
      const response = await fetch(`${service}/api/v1/telemetry`, { method: "POST", headers, body, signal });
      if (response.ok) return await response.json();
      pause = Number(response.headers.get("Retry-After"));
      if (!pause) throw new RangeError(`${response.status}: ${await response.text()}`); // the batch or the token was refused
    } catch (error) {
      if (error instanceof RangeError) throw error; // any other error means that the service cannot be reached now
    }
    await sleep(1000 * pause);
  }
}

const run = randomUUID();
const total = { accepted: 0, refused: 0 };
for (let number = 0; number < 100; number++) {
  const id = `${run}/${number}`;
  const batch = Array.from({ length: 10 }, (_, step) => ({
    policy: "walker-js",
    agent_id: "js-1",
    episode_id: id,
    step,
    ts: Date.now(),
    action: Math.random() < 0.5 ? "left" : "right",
    reward: Math.random() - 0.5,
    terminated: step === 9,
  }));
  const { accepted, refused } = await post(id, batch);
  total.accepted += accepted;
  total.refused += refused;
}
console.log(JSON.stringify({ sent: { "walker-js": total.accepted }, lost: total.refused }));
