/** MCP servers that are the operator's programs on the worker. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { workerProgramSchema } from "../../activities/config/mcp-settings.ts";
import { createMcp } from "../../activities/mcp/load-mcp.ts";
import { endOrphanPrograms } from "../../activities/mcp/orphan-programs.ts";
import { startAgent } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { mcpProgram } from "../support/mcp-programs.ts";
import { untilWaiting } from "../support/questions.ts";
import { perFile } from "../support/per-file.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts } from "../support/stored.ts";
import { withServers } from "../support/mcp-server.ts";
import { createMcpAccess } from "../../activities/mcp/access.ts";

/** A process that a program starts, and that only a worker's start can end. */
const HELPER = "98761";
const program = {
  command: "sh",
  args: ["-c", `sleep ${HELPER} >/dev/null 2>&1 & exec python3 -c "$1"`, "sh", mcpProgram.args[1] ?? ""],
  env: { GIVEN: "${LONGHAUL_MCP_KEY}" },
};

const agent = perFile(() =>
  startAgent({
    mcp: createMcp({
      ...createMcpAccess({ PATH: process.env["PATH"], LONGHAUL_MCP_KEY: "a key", OPENAI_API_KEY: "another" }),
      programs: { own: workerProgramSchema.parse(program) },
    }),
  }),
);

test("a session uses the policy's servers with the listed variables, and leaves nothing", async () => {
  const session = await agent.start(
    scriptedModel()
      .calls("own__whoami", {})
      .calls("own__whoami", {})
      .calls("own__die", {})
      .calls("own__whoami", {})
      .says("Done."),
    { config: withServers({ own: { where: "worker" }, other: { where: "worker" } }) },
  );
  expect(await session.result()).toMatchObject({ status: "completed" });
  const [first = "", second = "", died, fresh = ""] = await resultTexts(agent.database.store, session.id);
  expect(JSON.parse(first)).toMatchObject({ calls: 1, secrets: ["LONGHAUL_PARENT"], given: "a key" });
  expect(JSON.parse(second)).toEqual({ ...JSON.parse(first), calls: 2 });
  expect(died).toMatch(/not known how this call ended/);
  expect(fresh).toMatch(/^\[The server own was restarted for this call/);
  expect((await callRows(agent.database.store, session.id)).map(({ status }) => status)).toEqual([
    "completed",
    "completed",
    "unknown",
    "completed",
  ]);
  const failed = (await session.events()).find(({ type }) => type === "mcp:failed");
  expect(failed?.data).toMatchObject({
    server: "other",
    message: expect.stringContaining("names no program for it"),
  });
  await agent.deps.mcp?.close();
  await eventually("nothing of it is left", () => helpers().length === 0);
});

test("a program outlives no worker: the next worker ends a killed one's programs", async ({
  onTestFinished,
}) => {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-policy-"));
  const policy = join(folder, "policy.yaml");
  writeFileSync(policy, stringify({ mcpServers: { own: program } }));
  const session = await startKillableSession(
    agent.database,
    scriptedModel()
      .calls("own__whoami", {})
      .calls("ask_user", { question: "Go on?" })
      .calls("own__whoami", {})
      .says("Done."),
    {
      config: withServers({ own: { where: "worker" } }),
      environment: { LONGHAUL_POLICY: policy, LONGHAUL_MCP_KEY: "a key" },
    },
  );
  onTestFinished(async () => {
    await session.close();
    // The last worker was killed too.
    endOrphanPrograms();
    rmSync(folder, { recursive: true, force: true });
  });
  const first = await session.startWorker();
  await untilWaiting(agent.database.store, session, 120_000);
  const before = helpers();
  expect(before).toHaveLength(1);
  await first.kill();
  expect(helpers()).toEqual(before);
  await session.startWorker();
  await eventually("what was left is ended", () => helpers().every((pid) => !before.includes(pid)), 60_000);
  await session.handle.signal("answer", "yes");
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  const [, , after] = await resultTexts(agent.database.store, session.id);
  expect(after).toMatch(/^\[The server own was restarted for this call/);
});

/** Processes that the program started. */
function helpers(): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && commandOf(pid) === `sleep\0${HELPER}\0`);
}

function commandOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return undefined;
  }
}
