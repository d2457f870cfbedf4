/**
 * Verifies a session's work: runs the commands of `verify` in its sandbox, on the files that are delivered. With a repository, what is
 * uncommitted is committed before, as delivery does it; that commit's tree is what the outcome is of.
 *
 * Idempotency key: (session, epoch, step, round, command), and a command's name in the sandbox with the files that it runs on: a second
 * attempt reads what was recorded, and follows a command that still runs. Side effects: a commit in the workspace, the commands' own,
 * rows, events, a notice to the model. Heartbeat: by timer. Retry class: engine, remote, database; a command that fails, or cannot be
 * run, is a result. Cancel: the command is ended, and nothing is recorded of it.
 */
import { isFresh } from "../config/verify-settings.ts";
import { inScope } from "../runtime/activity-scope.ts";
import type { AgentDeps } from "../runtime/deps.ts";
import { enterSession } from "../runtime/enter-session.ts";
import { fatal, superseded } from "../contract/failures.ts";
import type { VerifiedWork, VerifyInput } from "../contract/verify.ts";
import { type Sandbox, SandboxLost } from "../sandbox/sandbox.ts";
import type { Queryable } from "../store/db.ts";
import { appendEvents } from "../store/events.ts";
import { addNotice } from "../store/sandboxes.ts";
import { lockRun } from "../store/session-locks.ts";
import { baselineSignatures, listVerifications, recordVerification } from "../store/verifications.ts";
import { withoutLost, type SessionSandboxes } from "../workspace/session-sandbox.ts";
import {
  failureNotice,
  pathList,
  notRun,
  redBeforeNotice,
  unlessRedBefore,
  withRestored,
  withResult,
  type SeenCommand,
} from "./seen-command.ts";
import { verifyCommand } from "./verify-command.ts";
import { type Files, filesToVerify, type Verification } from "./files.ts";
import { pathsChangedSince, placedCommit } from "./fresh-files.ts";
import { type Fresh, inFresh, removeFresh } from "./fresh-sandbox.ts";

/** The commands may change files once, such as a formatter does; then they run again on what they made. */
const MOST_LOOKS = 2;
/** After so many lost sandboxes the work counts as not verifiable: another attempt would most likely lose the next one. */
const MOST_LOST = 2;

/** @param sandboxes each set up before it is returned */
export function createVerifyWork(deps: AgentDeps, sandboxes: SessionSandboxes) {
  return (input: VerifyInput): Promise<VerifiedWork> =>
    inScope(deps, async (scope) => {
      const session = await enterSession(deps, scope, {
        step: input.step + 1,
        phase: "model",
        round: "earlier",
      });
      const settings = session.config.verify;
      if (settings === undefined)
        throw fatal("BadConfiguration", "This session has no commands that verify its work.");
      const verification = { deps, scope, session, settings, input };
      const recorded = await concludedBefore(verification);
      if (recorded !== undefined) {
        if (isFresh(settings)) await removeFresh(verification);
        return recorded;
      }
      try {
        return await withoutLost(sandboxes, session.id, async () => {
          const { sandbox } = await sandboxes.open(session, input.step + 1, scope.signal);
          if (isFresh(settings)) return lookInFresh(verification, sandbox);
          if (input.baseline === true)
            return conclude(verification, NO_FILES, await runAll(verification, sandbox, NO_FILES));
          return look(verification, sandbox);
        });
      } catch (error) {
        if (!(error instanceof SandboxLost) || scope.tries < MOST_LOST) throw error;
        const [command = ""] = settings.commands;
        return conclude(verification, { tree: "", commit: undefined, changed: [] }, [
          notRun(command, `the sandbox was lost ${MOST_LOST} times while the commands ran`),
        ]);
      }
    });
}

/** An attempt before this one recorded the round, and its worker died before it could say so. */
async function concludedBefore(verification: Verification): Promise<VerifiedWork | undefined> {
  const { deps, session, settings, input } = verification;
  const rows = await listVerifications(deps.store.db, {
    ...input,
    sessionId: session.id,
    epoch: session.epoch,
  });
  const last = rows.at(-1);
  if (last === undefined) return undefined;
  const isOver = last.outcome !== "passed" || rows.length >= settings.commands.length;
  if (!isOver) return undefined;
  const how = last.exitCode === null ? last.outcome : `exit code ${last.exitCode}`;
  return toResult(verification, {
    outcome: last.outcome as VerifiedWork["outcome"],
    tree: last.tree,
    reason: last.outcome === "passed" ? undefined : `${last.text} (${how})`,
    signature: last.signature ?? undefined,
  });
}

async function look(verification: Verification, sandbox: Sandbox): Promise<VerifiedWork> {
  let files = await filesToVerify(verification, sandbox);
  for (let looks = 1; ; looks += 1) {
    if ("trouble" in files)
      return conclude(verification, NO_FILES, [notDeliverable(verification, files.trouble)]);
    const seen = await runAll(verification, sandbox, files);
    if (seen.at(-1)?.outcome !== "passed") return conclude(verification, files, seen);
    const after = await filesToVerify(verification, sandbox);
    if ("trouble" in after || after.tree === files.tree) return conclude(verification, files, seen);
    if (looks === MOST_LOOKS)
      return conclude(verification, after, [...seen.slice(0, -1), changedAgain(seen)]);
    files = after;
  }
}

/** In a new sandbox: what the commands change there is not delivered, so it fails. */
async function lookInFresh(verification: Verification, own: Sandbox): Promise<VerifiedWork> {
  const files = await filesToVerify(verification, own);
  if ("trouble" in files)
    return conclude(verification, NO_FILES, [notDeliverable(verification, files.trouble)]);
  const { source, tree } = files;
  const commit = source && (await placedCommit(verification, source));
  return inFresh(
    verification,
    { own, source, tree, commit },
    {
      body: async (fresh) => {
        const seen = await runAll(verification, fresh.sandbox, files);
        const isRestored = verification.settings.onProtected === "restore";
        const told = isRestored ? withRestored(seen, files.changed) : seen;
        return conclude(verification, files, await unlessChanged(told, fresh, commit));
      },
      otherwise: (why) => {
        const [command = ""] = verification.settings.commands;
        return conclude(verification, files, [
          notRun(command, `not run, as there is no fresh sandbox: ${why}`),
        ]);
      },
    },
  );
}

/** Fails work whose commands passed on files that they had changed before. */
async function unlessChanged(
  seen: readonly SeenCommand[],
  { sandbox, before }: Fresh,
  commit: string | undefined,
): Promise<readonly SeenCommand[]> {
  const last = seen.at(-1);
  if (last?.outcome !== "passed" || commit === undefined) return seen;
  const paths = await pathsChangedSince(sandbox, commit, before);
  if (paths.length === 0) return seen;
  const how = `the commands change files that are delivered as they were before: ${pathList(paths)}`;
  return [
    ...seen.slice(0, -1),
    { ...last, outcome: "failed", how, excerpt: how, signature: "changes-files" },
  ];
}

const NO_FILES: Files = { tree: "", commit: undefined, changed: [] };

/** The first command that does not pass is the last one, but before the first step: there each is looked at. */
async function runAll(verification: Verification, sandbox: Sandbox, { tree }: Files): Promise<SeenCommand[]> {
  const { commands, result } = verification.settings;
  const { deps, session, input } = verification;
  const before = input.baseline === true ? [] : await baselineSignatures(deps.store.db, session.id);
  const seen: SeenCommand[] = [];
  for (const index of commands.keys()) {
    const command = unlessRedBefore(await verifyCommand(verification, sandbox, { index, tree }), before);
    const isLast = index === commands.length - 1;
    seen.push(isLast ? await withResult(command, result, sandbox) : command);
    if (command.outcome !== "passed" && input.baseline !== true) break;
  }
  return seen;
}

/** What delivery would refuse is not verified either: the model can mend it. */
function notDeliverable({ settings: { commands } }: Verification, trouble: string): SeenCommand {
  const [command = ""] = commands;
  const how = `not run: the work cannot be delivered as it is: ${trouble}`;
  return { ...notRun(command, how), outcome: "failed", excerpt: trouble };
}

function changedAgain(seen: readonly SeenCommand[]): SeenCommand {
  const last = seen.at(-1) ?? notRun("", "");
  return {
    ...last,
    outcome: "failed",
    how: "the commands change files each time they run, so what was verified is never what is delivered",
    signature: "changes-files",
  };
}

/** Records the round and its events, and tells the model of a failure that it is to mend: in one transaction, once. */
async function conclude(
  verification: Verification,
  files: Files,
  seen: readonly SeenCommand[],
): Promise<VerifiedWork> {
  const { deps, scope, session, settings, input } = verification;
  const last = seen.at(-1) ?? notRun("", "no command was run");
  const isChanged = last.outcome === "passed" && files.changed.length > 0;
  const outcome = isChanged ? "changed-checks" : last.outcome;
  const why = isChanged
    ? `passed, and files that decide about it were changed: ${pathList(files.changed)}`
    : `${last.text} (${last.how})`;
  const result = toResult(verification, {
    outcome,
    tree: files.tree,
    reason: outcome === "passed" ? undefined : why,
    signature: last.signature,
  });
  await deps.store.db.transaction(async (tx) => {
    if (!(await lockRun(tx, session.id, scope.runId)))
      throw superseded("what the commands said was not recorded");
    const all = [...seen.slice(0, -1), { ...last, outcome }];
    const isNew = await recordRound(tx, verification, files, all);
    const redBefore = input.baseline === true ? redBeforeNotice(seen) : undefined;
    if (isNew && redBefore !== undefined) await addNotice(tx, session.id, redBefore);
    if (isNew && result.goesOn === true) {
      const round = input.round + 1;
      const notice = failureNotice(last, { round, rounds: settings.rounds, changed: files.changed });
      await addNotice(tx, session.id, deps.sanitizer.clean(notice));
    }
  });
  return result;
}

/** @returns false if all of it was recorded before */
async function recordRound(
  tx: Queryable,
  { session, input }: Verification,
  { tree, commit, changed, changedLines }: Files,
  seen: readonly SeenCommand[],
): Promise<boolean> {
  const { step, round } = input;
  const { id: sessionId, epoch } = session;
  const protectedPaths = changed.length > 0 ? [...changed] : undefined;
  let isNew = false;
  for (const [command, entry] of seen.entries()) {
    const { text, outcome, how, exitCode, ms, excerpt, signature, result, handle } = entry;
    const at = { sessionId, epoch, step, round, command };
    const ended = { outcome, exitCode, ms, signature, output: excerpt, handle, result, changedLines };
    if (!(await recordVerification(tx, { ...at, ...ended, text, tree, commit, protectedPaths }))) continue;
    isNew = true;
    const facts = { outcome, how, exitCode, ms, tail: excerpt, handle, changed: protectedPaths };
    const data = { round, command: text, ...facts };
    await appendEvents(tx, sessionId, epoch, [{ type: "verify:ended", step, data }]);
  }
  return isNew;
}

/** Whether the model goes on follows from the input and the outcome alone, so that each attempt says the same. */
function toResult(
  { input }: Pick<Verification, "input">,
  { outcome, tree, reason, signature }: Pick<VerifiedWork, "outcome" | "tree" | "reason" | "signature">,
): VerifiedWork {
  const isSame = input.before?.tree === tree && input.before.signature === signature;
  const why = isSame && outcome === "failed" ? `${reason ?? ""}; no progress since the last look` : reason;
  return {
    outcome,
    tree,
    signature,
    reason: why,
    goesOn: outcome === "failed" && input.isLast !== true && !isSame ? true : undefined,
  };
}
