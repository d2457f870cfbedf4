/** `longhaul cancel ID`: ends a session's run and waits until it has cleaned up. */
import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import { openServices, type Services } from "../connection.ts";
import { describeRun } from "../describe-run.ts";
import { exitCodes, missing, notPossible, type ExitCode } from "../errors.ts";
import type { Output } from "../output.ts";
import { requireSession } from "../require-session.ts";
import { notRunning } from "../running-session.ts";

const POLL_MS = 100;
const WAIT_NOTE_MS = 5_000;
const MAX_WAIT_MS = 60_000;

export function cancelCommand(output: Output, done: (code: ExitCode) => void): Command {
  return new Command("cancel")
    .description("end a session's run; waits for its clean-up")
    .argument("<id>", "session")
    .action(async (id: string) => done(await cancel(id, output)));
}

async function cancel(id: string, output: Output): Promise<ExitCode> {
  const services = await openServices();
  try {
    const row = await requireSession(services, id);
    const client = await services.temporal.client();
    const before = await describeRun(services.temporal, id);
    if (before?.status !== "RUNNING") throw notRunning(id, row.status);
    await client.workflow.getHandle(id).cancel();
    const status = await waitForEnd(services, id, output);
    if (status !== "CANCELLED") {
      throw notPossible(`${id} ended by itself before the cancel reached it (${status.toLowerCase()}).`);
    }
    output.note(`${id} is cancelled. Take it up again with: longhaul say ${id} "…"\n`);
    return exitCodes.completed;
  } finally {
    await services.close();
  }
}

async function waitForEnd(services: Services, id: string, output: Output): Promise<string> {
  const begun = performance.now();
  let said = false;
  for (;;) {
    const run = await describeRun(services.temporal, id);
    if (run !== undefined && run.status !== "RUNNING") return run.status;
    const waited = performance.now() - begun;
    if (waited > MAX_WAIT_MS) {
      throw missing(
        `${id} was told to end, and no worker has done so in ${MAX_WAIT_MS / 1_000} s.`,
        "Start one with `longhaul worker`: the cancel is kept.",
      );
    }
    if (!said && waited > WAIT_NOTE_MS) {
      said = true;
      output.note("Waiting for the clean-up (a worker must run for it) …\n");
    }
    await sleep(POLL_MS);
  }
}
