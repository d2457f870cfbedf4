import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { deleteSchedule } from "../../client/schedules/schedules.ts";
import {
  begin,
  emptyFolder,
  inThisProcess,
  longhaul,
  temporal,
  untilStatus,
} from "../support/commands/longhaul.ts";

/** Temporal outlives a test's database. */
const RUN = randomBytes(3).toString("hex");
const described = async (id: string) => (await temporal()).workflow.getHandle(id).describe();
const over = (id: string) => untilStatus(id, ({ status }) => status === "completed");

test("priority and tenant stay over continue-as-new and a resume; the tenant can be searched", async () => {
  const config = join(emptyFolder(), "short.yaml");
  writeFileSync(config, "limits: {maxHistoryEvents: 50}\n");
  const steps = Array.from({ length: 6 }, (_, step) => `run: echo ${step}`).join("\n");
  const id = await begin(`${steps}\nsay: Done.`, "--priority", "1", "--tenant", "acme", "--config", config);
  await over(id);
  const last = await described(id);
  expect(last.raw.workflowExtendedInfo?.originalStartTime).toBeDefined();
  expect(last.historyLength).toBeLessThan(150);
  const asked = { priorityKey: 1, fairnessKey: "acme" };
  expect(last.priority).toMatchObject(asked);
  expect(last.searchAttributes).toMatchObject({ AgentTenant: ["acme"] });
  const first = last.raw.workflowExecutionInfo?.firstRunId;
  expect(first).not.toBe(last.runId);
  expect((await longhaul(["say", id, "say: Again."])).code).toBe(0);
  await untilStatus(id, ({ result }) => result === "Again.");
  expect((await described(id)).priority).toMatchObject(asked);
  const shown = { id, priority: 1, tenant: "acme" };
  expect(JSON.parse((await longhaul(["status", id, "--json"])).out)).toMatchObject(shown);
  const listed = await longhaul(["list", "--limit", "1000", "--json"]);
  expect(JSON.parse(listed.out)).toContainEqual(expect.objectContaining(shown));
}, 240_000);

test("a batch's line overrides its flags, and a schedule's sessions have its flags", async () => {
  const cwd = emptyFolder();
  const file = `turns-${RUN}.jsonl`;
  const lines = [
    { id: "one", task: "say: One." },
    { id: "two", task: "say: Two.", tenant: "beta", priority: 5 },
  ];
  writeFileSync(join(cwd, file), lines.map((line) => JSON.stringify(line)).join("\n"));
  const batch = await longhaul(["batch", file, "--tenant", "alpha"], { cwd });
  expect(batch.code, batch.err).toBe(0);
  const [one, two] = [await described(`turns-${RUN}-one`), await described(`turns-${RUN}-two`)];
  expect(one.priority).toMatchObject({ fairnessKey: "alpha" });
  expect(two.priority).toMatchObject({ fairnessKey: "beta", priorityKey: 5 });
  expect(two.searchAttributes).toMatchObject({ AgentTenant: ["beta"], AgentBatch: [`turns-${RUN}`] });

  const name = `turns-${RUN}`;
  const flags = ["--cron", "0 6 1 1 *", "--tenant", "gamma", "--priority", "4"];
  const made = await longhaul(["schedule", "create", name, ...flags, "--", "say: Each time."]);
  expect(made.code, made.err).toBe(0);
  onTestFinished(() => inThisProcess((services) => deleteSchedule(services, name)).catch(() => undefined));
  const started = await longhaul(["schedule", "run", name]);
  expect(started.code, started.err).toBe(0);
  const id = started.out.trim();
  await over(id);
  expect((await described(id)).priority).toMatchObject({ fairnessKey: "gamma", priorityKey: 4 });
}, 240_000);

test("a priority out of range, and a tenant with invalid characters, are refused with 2", async () => {
  for (const [flag, value] of [
    ["--priority", "6"],
    ["--priority", "high"],
    ["--tenant", "a b"],
    ["--tenant", "x".repeat(65)],
  ] as const) {
    const { code, out, err } = await longhaul(["start", flag, value, "say: Never."]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(flag);
  }
});
