/** The rehearsal model as a service: started only if no real model is configured. */
import { fileURLToPath } from "node:url";
import { childEnvironment } from "./environment.ts";
import { freePort } from "./processes.ts";
import { answersWhileAlive, startService } from "./start-service.ts";
import { readState, type SetUp } from "./state.ts";

const REHEARSAL_PORT = 8_788;

/** True if neither a key nor a compatible server is configured. */
export function wantsRehearsal(): boolean {
  return !process.env["OPENAI_API_KEY"] && !process.env["OPENAI_BASE_URL"];
}

/** @returns its base URL. @throws ServiceMissing */
export async function ensureRehearsal({ home, ports, say }: SetUp): Promise<string> {
  const running = readState(home).services.rehearsal;
  if (running !== undefined && (await answersWhileAlive(running, () => probe(running.address))))
    return running.address;
  const port = await freePort(ports === "fixed" ? REHEARSAL_PORT : 0);
  const address = `http://127.0.0.1:${port}/v1`;
  await startService({
    home,
    name: "rehearsal",
    title: "Rehearsal model",
    command: process.execPath,
    args: [fileURLToPath(new URL("../../examples/rehearsal/main.ts", import.meta.url))],
    env: { ...childEnvironment("rehearsal"), LONGHAUL_REHEARSAL_PORT: String(port) },
    address,
    probe: () => probe(address),
    timeoutMs: 20_000,
    otherwise: "set OPENAI_API_KEY to use a real model",
  });
  say(
    "No OPENAI_API_KEY is set: in the place of OpenAI's models, the rehearsal model plays a written script, and its tools really run.",
  );
  return address;
}

/** Any answer counts: its content does not matter. */
async function probe(address: string): Promise<void> {
  const response = await fetch(address, { signal: AbortSignal.timeout(2_000) });
  await response.body?.cancel();
}
