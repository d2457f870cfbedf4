/** Runs that were recorded go the same way through today's code: else a deploy would break every run in progress. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DeterminismViolationError } from "@temporalio/workflow";
import {
  bundleWorkflowCode,
  DefaultLogger,
  makeTelemetryFilterString,
  Runtime,
  Worker,
} from "@temporalio/worker";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ensureWorkflowBundle } from "../../worker/bundle.ts";
import { dataConverter, payloadConverterPath } from "../../temporal/codec.ts";
import { readable, recordedHistories, type RecordedHistory } from "../support/history-fixture.ts";
import { workflowSinks } from "../../worker/worker-options.ts";

const project = fileURLToPath(new URL("../..", import.meta.url));
/** Each way a run may go, and what its history has that no other way leaves. [A11] */
const SHAPES: Readonly<Record<string, RegExp>> = {
  "budget-question": /askBudget.*markWaiting.*signalName\W+answer.*settleBudget.*modelStep/,
  "cancel-mid-stream": /modelStep.*storeGuidance.*EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED/,
  "cancel-mid-tool": /runTool.*ACTIVITY_TASK_CANCEL_REQUESTED.*EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED/,
  compaction: /trigger\W+threshold.*kind\W+compacted/,
  "continue-as-new-first": /EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW/,
  "continue-as-new-last": /carried.*EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED/,
  failure: /ModelCredentials.*EVENT_TYPE_WORKFLOW_EXECUTION_FAILED/,
  follower:
    /lookAtPullRequest.*START_CHILD.*CHILD_WORKFLOW_EXECUTION_COMPLETED.*follow:paused.*goOn.*closeFollow/,
  "fork-of": /guidance.*Take the other way.*step\W+2.*step\W+3.*EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED/,
  guidance: /EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED.*EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED/,
  interrupt:
    /signalName\W+interrupt.*ACTIVITY_TASK_CANCEL_REQUESTED.*EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED/,
  "manual-compaction": /trigger\W+manual.*kind\W+compacted/,
  "max-steps": /wrapUp.*status\W+max_steps/,
  "over-budget": /kind\W+over-budget.*askBudget.*TIMER_STARTED.*signalName\W+answer.*settleBudget.*modelStep/,
  overflow: /kind\W+overflow.*trigger\W+overflow.*kind\W+compacted/,
  "parallel-tools": /index\W+0.*index\W+1.*index\W+2/,
  plain: /runTool.*EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED/,
  reset: /EVENT_TYPE_WORKFLOW_TASK_FAILED.*EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED/,
  retry: /longhaul retry --from-step 3.*EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW/,
  stuck: /warning.*type\W+Stuck/,
  "undo-compaction": /kind\W+compacted.*signalName\W+undoCompaction.*kind\W+undone.*kind\W+nothing/,
};
const MAX_FIXTURE_BYTES = 150_000;

const histories = recordedHistories();
const workers: string[] = [];

beforeAll(() => {
  // What the changed workflow is refused with is expected, and long.
  const filter = makeTelemetryFilterString({ core: "ERROR" });
  Runtime.install({ logger: new DefaultLogger("ERROR"), telemetryOptions: { logging: { filter } } });
});
afterAll(() => {
  for (const folder of workers) rmSync(folder, { recursive: true, force: true });
});

async function replay(codePath: string, { history, shape }: RecordedHistory): Promise<void> {
  await Worker.runReplayHistory(
    { workflowBundle: { codePath }, dataConverter, sinks: workflowSinks() },
    history,
    `replayed-${shape}`,
  );
}

/** The workflow's code with one change, bundled. @throws Error if the text to change is not there */
async function changedBundle(file: string, change: (source: string) => string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-changed-"));
  workers.push(folder);
  for (const sources of ["workflows", "activities/contract", "activities/text"])
    cpSync(join(project, sources), join(folder, sources), { recursive: true });
  symlinkSync(join(project, "node_modules"), join(folder, "node_modules"));
  const path = join(folder, "workflows", file);
  const source = readFileSync(path, "utf8");
  const changed = change(source);
  if (changed === source) throw new Error(`The change did not apply to ${file}: look at this test.`);
  writeFileSync(path, changed);
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(folder, "workflows", "index.ts"),
    payloadConverterPath,
    logger: new DefaultLogger("ERROR"),
  });
  const codePath = join(folder, "bundle.js");
  writeFileSync(codePath, code);
  return codePath;
}

function swap(one: string, other: string): (source: string) => string {
  return (source) => source.replaceAll(one, "\0").replaceAll(other, one).replaceAll("\0", other);
}

describe("recorded histories", () => {
  it("are there for every shape a run may take", { tags: ["A11"] }, () => {
    expect(histories.map((recorded) => recorded.shape)).toEqual(Object.keys(SHAPES));
    for (const { shape, history } of histories) expect(readable(history)).toMatch(SHAPES[shape] ?? /^$/);
  });

  it.each(histories.map((recorded) => [recorded.shape, recorded] as const))(
    "of the shape %s replays on today's code",
    { tags: ["A11"] },
    async (_shape, recorded) => {
      await replay((await ensureWorkflowBundle()).codePath, recorded);
    },
  );

  it("are small, and say nothing of where they were recorded", () => {
    for (const { text, history } of histories) {
      expect(text.length).toBeLessThan(MAX_FIXTURE_BYTES);
      const words = readable(history);
      expect(words).not.toMatch(/sk-canary|postgres:\/\/|file:\/\/|node_modules|\d@[\w.-]+/);
      expect(words).not.toContain(project.replace(/\/$/, ""));
    }
  });
});

describe("a workflow in which two activities are swapped", () => {
  let [sessions, followers] = ["", ""];
  beforeAll(async () => {
    sessions = await changedBundle("lifecycle.ts", swap('perform("closeSandbox"', 'perform("closeSession"'));
    followers = await changedBundle(
      "follow-session.ts",
      swap("Activities.openFollow", "Activities.closeFollow"),
    );
  });

  const closed = histories.filter(({ history }) => !readable(history).includes("EXECUTION_CONTINUED_AS_NEW"));
  it.each(closed.map((recorded) => [recorded.shape, recorded] as const))(
    "does not replay the shape %s",
    { tags: ["A11"] },
    async (shape, recorded) => {
      const codePath = shape === "follower" ? followers : sessions;
      await expect(replay(codePath, recorded)).rejects.toThrow(DeterminismViolationError);
    },
  );
});
