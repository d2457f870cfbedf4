/** A set-up as a program that a test interrupts: Postgres, Temporal and a worker in the given folder. */
import { once } from "node:events";
import { bringUp } from "../../client/setup/services.ts";
import { reportingWhatStays } from "../../client/setup/up.ts";
import { ensureWorker } from "../../client/setup/worker-process.ts";

const home = process.argv[2] ?? "";
const say = (line: string) => void process.stdout.write(`${line}\n`);

await reportingWhatStays({ home, say }, async () => {
  const services = await bringUp({ home, ports: "free", say, need: ["postgres", "temporal"] });
  await ensureWorker({ home, services, say });
  say("Everything is running.");
  // The last line may be interrupted too: the set-up is over when the test sends its signal.
  await once(process.stdin.resume(), "end");
});
