/** The rehearsal model as a service: started only where no real model is configured. */
import { join } from "node:path";
import { childEnvironment } from "./environment.ts";
import { freePort, isAlive, launch, tail } from "./processes.ts";
import { until } from "../../worker/connect/until.ts";
import type { Say } from "./progress.ts";
import { ServiceMissing } from "../../worker/connect/service-missing.ts";
import { readState, remember } from "./state.ts";

const REHEARSAL_PORT = 8_788;

/** True where neither a key nor a compatible server is configured. */
export function wantsRehearsal(): boolean {
  return !process.env["OPENAI_API_KEY"] && !process.env["OPENAI_BASE_URL"];
}

/** @returns its base URL. @throws ServiceMissing */
export async function ensureRehearsal(options: {
  readonly home: string;
  readonly ports: "fixed" | "free";
  readonly say: Say;
}): Promise<string> {
  const { home } = options;
  const running = readState(home).services.rehearsal;
  if (running !== undefined && (await isAlive(running)) && (await listens(running.address)))
    return running.address;
  const port = await freePort(options.ports === "fixed" ? REHEARSAL_PORT : 0);
  const address = `http://127.0.0.1:${port}/v1`;
  const log = join(home, "logs", "rehearsal.log");
  const script = new URL("../../worker/rehearsal/main.ts", import.meta.url).pathname;
  const mark = await launch({
    command: process.execPath,
    args: [script],
    env: { ...childEnvironment("rehearsal"), LONGHAUL_REHEARSAL_PORT: String(port) },
    log,
  });
  const failed = (reason: string) =>
    new ServiceMissing({
      service: "Rehearsal model",
      problem: "did not start",
      address,
      reason,
      fix: `See ${log}, or set OPENAI_API_KEY to use a real model.`,
    });
  const up = await until(async () => {
    if (!(await isAlive(mark))) throw failed(`it exited: ${tail(log, 2)}`);
    return listens(address);
  }, 20_000);
  if (!up) throw failed("it does not answer");
  remember(home, "rehearsal", { ...mark, address, log });
  options.say("No OPENAI_API_KEY: the rehearsal model plays a written script; it really drives the tools.");
  return address;
}

/** Any answer counts: what it serves is the model's affair. */
function listens(address: string): Promise<boolean> {
  return fetch(`${address}/models`, { signal: AbortSignal.timeout(2_000) }).then(
    async (response) => {
      await response.body?.cancel();
      return true;
    },
    () => false,
  );
}
