/** Records the trajectory for the policies' benchmark. Not part of `npm test`: node scripts/record-trajectory.ts. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, inject, it } from "vitest";
import type { RunConfig } from "../../../activities/config/agent-config.ts";
import { packWorkspace, type WorkspaceFile } from "../../../activities/store/workspace-pack.ts";
import { MAX_RESULT_CHARS } from "../../../activities/config/tool-limits.ts";
import { readWhole } from "../../../activities/store/reading.ts";
import { sendGuidance } from "../../../client/sessions/send-guidance.ts";
import { exportDocument } from "../../../client/sessions/session-export.ts";
import { startAgent, type AgentHarness, type RunningSession } from "../../support/agent-harness.ts";
import { clientServices, sessionRow } from "../../support/client-services.ts";
import { call, text } from "../../support/scripted-model.ts";
import { Repository } from "./commits.ts";
import { planWork, type WorkStep } from "./plan-work.ts";
import { recordOf } from "./record-of.ts";

const PROJECT = fileURLToPath(new URL("../../..", import.meta.url));
const FIXTURE = fileURLToPath(new URL("../../fixtures/trajectory.json.gz", import.meta.url));
const IMAGE = "longhaul-recording:1";
/** The work: this repository's commits after the first of the two, up to the second. */
const AFTER = "a0500945a18c";
const UP_TO = "3234d28c23ad";
const STEPS = 300;
/** No compaction, no prune, and results as long as any policy may want them. */
const WINDOW_TOKENS = 8_000_000;

let agent: AgentHarness;
beforeAll(async () => {
  makeImage();
  agent = await startAgent();
}, 600_000);
afterAll(() => agent.close());

/** It stays, for the next recording: `docker image rm longhaul-recording:1`. */
function makeImage(): void {
  const known = execFileSync("docker", ["image", "ls", "--quiet", IMAGE], { encoding: "utf8" });
  if (known !== "") return;
  const script = fileURLToPath(new URL("image.sh", import.meta.url));
  execFileSync("sh", [script, PROJECT, inject("sandboxImage"), IMAGE], { stdio: "inherit" });
}

function recordingConfig(config: RunConfig): RunConfig {
  return {
    ...config,
    contextWindow: WINDOW_TOKENS,
    maxOutput: 64_000,
    context: { ...config.context, options: { auto: false, prune: "never" } },
    tools: { bash: { limits: { maxChars: MAX_RESULT_CHARS } } },
    sandbox: { ...config.sandbox, image: IMAGE, memory: "3g", network: "none" },
  };
}

async function workspaceAt(repository: Repository, commit: string) {
  const files = repository.files(commit);
  const folders = new Set(
    files.flatMap(({ path }) =>
      path
        .split("/")
        .slice(0, -1)
        .map((_, at, all) => all.slice(0, at + 1).join("/")),
    ),
  );
  const list: WorkspaceFile[] = [
    ...[...folders].toSorted().map((path) => ({ kind: "folder" as const, path, mode: 0o755 })),
    ...files.map((file) => ({ kind: "file" as const, ...file })),
    { kind: "link", path: "node_modules", mode: 0o777, target: "/opt/project/node_modules" },
  ];
  return packWorkspace(list);
}

/** Plays the steps; what the person says comes while a step is asked for, or after the turn has ended. */
async function play(
  task: string,
  steps: readonly WorkStep[],
  repository: Repository,
): Promise<RunningSession> {
  const session: RunningSession = await agent.start(
    async (_request, index) => {
      const step = steps[index];
      if (step === undefined) return { parts: [text("Nothing is left to do.")] };
      if (index % 10 === 0) process.stderr.write(`step ${index}\n`);
      if (step.guidance !== undefined)
        await session.handle.signal("guidance", { id: `said-${index}`, text: step.guidance });
      return { parts: [text(step.text), ...step.calls.map(({ name, input }) => call(name, input))] };
    },
    {
      task,
      workspace: await workspaceAt(repository, AFTER),
      config: recordingConfig,
      served: { "gpt-4o": { window: WINDOW_TOKENS, maxOutput: 64_000, input: ["text"] } },
      countTokens: (value) => Math.ceil(value.length / 4),
    },
  );
  const services = clientServices(agent);
  for (const [at, { comesBack }] of [...steps, { comesBack: undefined }].entries()) {
    if (comesBack === undefined) continue;
    await agent.client.workflow.getHandle(session.id).result();
    const row = await sessionRow(agent, session.id);
    await sendGuidance(services, row, { id: `back-${at}`, text: comesBack, attachments: [] });
  }
  await agent.client.workflow.getHandle(session.id).result();
  return session;
}

it("records", { timeout: 3_600_000 }, async () => {
  const repository = new Repository(PROJECT);
  const { task, steps } = planWork(repository.commits(AFTER, UP_TO), STEPS);
  const { id } = await play(task, steps, repository);
  const row = await sessionRow(agent, id);
  const whole = exportDocument(row, await readWhole(agent.database.store.db, id));
  const record = JSON.stringify(recordOf(whole)).replaceAll(id, "session");
  writeFileSync(FIXTURE, gzipSync(record, { level: 9 }));
});
