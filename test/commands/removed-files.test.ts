/** A worker whose own files were removed while it runs, as an update in its folder does. */
import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { cloneProject } from "../support/clone-project.ts";
import { emptyFolder, longhaul, untilStatus } from "../support/commands/longhaul.ts";
import { eventually } from "../support/eventually.ts";
import { startMcpServer } from "../support/mcp-server.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

test("ends when it needs a part that is gone; another worker continues with the server's tools", async () => {
  const { url } = await startMcpServer((server) => {
    server.registerTool("get", { description: "Gets a row." }, () => ({
      content: [{ type: "text", text: "row 1" }],
    }));
  });
  const settings = join(emptyFolder(), "settings.yaml");
  writeFileSync(settings, JSON.stringify({ mcpServers: { rows: { url } } }));
  const environment = { ...inject("commandsEnvironment"), LONGHAUL_TASK_QUEUE: `removed-${randomUUID()}` };
  const clone = cloneProject();
  const broken = await startWorkerProcess(environment, { clone });
  onTestFinished(() => broken.kill());
  rmSync(join(clone, "activities", "mcp"), { recursive: true });
  const { out } = await longhaul(["start", "call: rows__get {}\nsay: Done.", "--config", settings], {
    environment,
  });
  await eventually("it ends", () => !broken.alive, 60_000);
  expect(broken.log()).toContain("a part of this program can no longer be loaded");

  const whole = await startWorkerProcess(environment);
  onTestFinished(async () => void (await whole.terminate()));
  await untilStatus(out.trim(), ({ status }) => status === "completed");
  const { out: log } = await longhaul(["logs", out.trim(), "--json"], { environment });
  expect(log).toContain("row 1");
  expect(log).not.toContain("mcp:failed");
});
