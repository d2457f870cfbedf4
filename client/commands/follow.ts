/** `longhaul follow ID` and `unfollow ID`: a session stays with its pull request until it is merged, or no more. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { FollowRow } from "../../activities/store/follows.ts";
import type { SessionRow } from "../../activities/store/reading.ts";
import type { Services } from "../connect/connection.ts";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import { harmlessLine, shellWord } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { dollars } from "../../activities/text/format.ts";
import { followSchema } from "../../activities/config/follow-settings.ts";
import { readFollow, startFollowing, stopFollowing } from "../follow/follow-pull-request.ts";
import { followExitCode, followLines, followStatus } from "../view/followed-words.ts";
import { checked } from "../sessions/flag-values.ts";
import { EXIT_ON_QUESTION } from "../sessions/run-flags.ts";
import { SESSION, withWorkingSession } from "../sessions/with-session.ts";

interface FollowFlags {
  readonly rounds?: number;
  readonly days?: number;
  readonly maxCost?: number;
  readonly wait?: boolean;
  readonly exitOnQuestion?: boolean;
  readonly json?: boolean;
}

export function followCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .option(
      "--rounds <n>",
      "tell the session at most so often what is wrong (default: 5)",
      checked(followSchema.shape.rounds, Number),
    )
    .option(
      "--days <n>",
      "follow for so long from now (default: 14)",
      checked(followSchema.shape.days, Number),
    )
    .option(
      "--max-cost <usd>",
      "stop telling once these rounds have cost so much (default: 10)",
      checked(followSchema.shape.maxCostUsd, Number),
    )
    .option("--wait", "wait for the end: code 0 merged, 1 closed, 3 paused at a bound")
    .option("--exit-on-question", `with --wait: ${EXIT_ON_QUESTION}`)
    .option("--json", "one JSON document");
  return (reference: string, flags: FollowFlags) =>
    withWorkingSession(reference, async (services, row) => {
      const { rounds, days, maxCost: maxCostUsd } = flags;
      const begun = await startFollowing(services, row, { rounds, days, maxCostUsd });
      if (flags.wait !== true) {
        if (flags.json === true) output.json(followStatus(begun, []), 2);
        else output.note(`${begunText(row.id, begun)}\n`);
        return undefined;
      }
      if (flags.json !== true) output.note(`${begunText(row.id, begun)}\n`);
      return untilEnd(services, row, flags, output);
    });
}

function begunText(id: string, { url, rounds, roundsUpTo, maxCostUsd, until }: FollowRow): string {
  return `${harmlessLine(url, 200)} is followed until it is merged: at most ${roundsUpTo - rounds} more rounds, ${dollars(maxCostUsd)}, until ${until.toISOString().slice(0, 16)}Z.\nSee how it stands: longhaul status ${shellWord(id)}. End it: longhaul unfollow ${shellWord(id)}`;
}

const POLL_MS = 1_000;

/** Ctrl-C detaches: it goes on without us. */
async function untilEnd(
  services: Services,
  { id }: SessionRow,
  { exitOnQuestion = false, json = false }: FollowFlags,
  output: Output,
): Promise<ExitCode> {
  const detach = new AbortController();
  const onSignal = () => detach.abort();
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  try {
    let told = "";
    for (;;) {
      const row = await readFollow(services, id);
      const status = followStatus(row, []);
      if (row === undefined || status === null) return exitCodes.impossible;
      const asks = exitOnQuestion && (await hasOpenQuestion(services, id));
      const lines = followLines(id, { ...status, nextLookAt: null }, new Date()).join("\n  ");
      if (!json && lines !== told) output.note(`  ${lines}\n`);
      told = lines;
      if (row.state !== "following" || asks || detach.signal.aborted) {
        if (json) output.json(status, 2);
        if (detach.signal.aborted) return exitCodes.interrupted;
        return asks ? exitCodes.waits : followExitCode(row);
      }
      await sleep(POLL_MS, undefined, { signal: detach.signal }).catch(() => undefined);
    }
  } finally {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
}

async function hasOpenQuestion({ store }: Services, id: string): Promise<boolean> {
  const { listQuestions } = await import("../../activities/store/questions.ts");
  return (await listQuestions(store.db, { of: id })).length > 0;
}

export function unfollowCommand(command: Command, output: Output) {
  command.argument("<id>", SESSION).option("--json", "one JSON document");
  return (reference: string, flags: { readonly json?: boolean }) =>
    withWorkingSession(reference, async (services, row) => {
      const ended = await stopFollowing(services, row);
      if (flags.json === true) output.json(followStatus(ended, []), 2);
      else output.note(`${harmlessLine(ended.url, 200)} is not followed any more. It stays as it is.\n`);
    });
}
