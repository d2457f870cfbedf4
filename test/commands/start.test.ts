import { expect, inject, test } from "vitest";
import { begin, longhaul, temporal, untilRunning, untilStatus } from "../support/commands/longhaul.ts";

test("prints the session's id alone on stdout and leaves the task running", async () => {
  const { code, out, err } = await longhaul(["start", "run: sleep 1\nsay: Slept."]);
  expect(code).toBe(0);
  expect(out).toMatch(/^[\w-]+\n$/);
  expect(err).not.toContain(out.trim() + "\n\n");
  expect((await untilStatus(out.trim(), ({ status }) => status !== "active")).result).toBe("Slept.");
});

test("reads the task from standard input", async () => {
  const { code, out } = await longhaul(["start", "-"], { input: "say: From a pipe.\n" });
  expect(code).toBe(0);
  expect((await untilStatus(out.trim(), ({ status }) => status === "completed")).result).toBe("From a pipe.");
});

test("the same id and task attach while it runs; another task, or an ended id, is refused", async () => {
  const task = "run: sleep 100\nsay: Once.";
  const id = await begin(task, "--id", "start-twice");
  expect(await begin(task, "--id", "start-twice")).toBe(id);
  const other = await longhaul(["start", "say: Other.", "--id", "start-twice"]);
  expect(other).toMatchObject({ code: 5, out: "" });
  expect(other.err).toContain("start-twice");
  await untilRunning(id);
  await longhaul(["interrupt", id]);
  await untilStatus(id, ({ status }) => status === "completed");
  expect((await longhaul(["start", task, "--id", "start-twice"])).code).toBe(5);
});

test("a session that Temporal's Web UI starts with a task is like any other", async () => {
  const client = await temporal();
  const queue = inject("commandsEnvironment")["LONGHAUL_TASK_QUEUE"] ?? "";
  await client.workflow.start("codingAgent", {
    workflowId: "from-web-ui",
    taskQueue: queue,
    args: [{ task: "run: echo hello\nsay: From the Web UI." }],
  });
  const status = await untilStatus("from-web-ui", (session) => session.status === "completed");
  expect(status).toMatchObject({ result: "From the Web UI.", step: 2 });
  expect((await longhaul(["list", "--json"])).out).toContain('"from-web-ui"');
});
