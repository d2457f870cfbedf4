import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { batchWorkflowId } from "../../activities/contract/batch.ts";
import type { BatchDocument } from "../../client/batch/batch-document.ts";
import { eventually } from "../support/eventually.ts";
import { emptyFolder, longhaul, starting, statusOf, temporal } from "../support/commands/longhaul.ts";

function batchFile(cwd: string, name: string, items: readonly object[]): string {
  writeFileSync(join(cwd, name), items.map((item) => JSON.stringify(item)).join("\n"));
  return name;
}

/** Temporal outlives a test's database. */
const RUN = randomBytes(3).toString("hex");

const parsed = (out: string) => JSON.parse(out) as BatchDocument;

test(
  "processes a file; the same file again runs what failed or changed, and then nothing",
  { tags: ["B2"], timeout: 240_000 },
  async () => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, "folder"));
    writeFileSync(join(cwd, "folder", "note.txt"), "of the folder\n");
    const write = (second: string) =>
      batchFile(cwd, `tasks-${RUN}.jsonl`, [
        { id: "one", task: "say: One." },
        { id: "two", task: second },
        { id: "three", task: "run: cat note.txt\nsay: Three.", workspace: "folder" },
      ]);
    const flags = ["--concurrency", "2"];
    const first = await longhaul(["batch", write("refuse"), ...flags, "--json"], { cwd });
    expect(first.code, first.err).toBe(1);
    expect(parsed(first.out)).toMatchObject({
      name: `tasks-${RUN}`,
      status: "failed",
      total: 3,
      completed: 2,
      failed: 1,
      items: [
        { id: "one", status: "completed", session: `tasks-${RUN}-one`, attempt: 1 },
        { id: "two", status: "failed", failure: "ModelRejected" },
        { id: "three", status: "completed", task: "run: cat note.txt\nsay: Three." },
      ],
    });
    expect((await statusOf(`tasks-${RUN}-three`)).result).toBe("Three.");
    expect((await longhaul(["messages", `tasks-${RUN}-three`])).out).toContain("of the folder");
    const shown = await longhaul(["batch", "status", `tasks-${RUN}`]);
    expect(shown).toMatchObject({ code: 0, err: "" });
    expect(shown.out).toMatch(
      /^tasks-\w+ {2}failed: 2\/3 completed, 1 failed.*\n {2}one +completed +tasks-\w+-one +say: One\./,
    );
    const listed = await longhaul(["batch", "list"]);
    expect(listed.out).toMatch(new RegExp(`^tasks-${RUN} {2}failed: 2/3 completed, 1 failed`, "m"));
    const documents = JSON.parse((await longhaul(["batch", "list", "--json"])).out) as BatchDocument[];
    expect(documents.find(({ name }) => name === `tasks-${RUN}`)).toMatchObject({ total: 3, completed: 2 });

    const second = await longhaul(["batch", write("say: Two."), ...flags], { cwd });
    expect(second.code, second.err).toBe(0);
    expect(second.err).toContain(`1 session to start in batch tasks-${RUN}, 2 completed before`);
    expect(second.out).toMatch(/two +completed +tasks-\w+-two\.2/);
    const third = await longhaul(["batch", `tasks-${RUN}.jsonl`, ...flags], { cwd });
    expect(third.code, third.err).toBe(0);
    expect(third.err).toContain(`0 sessions to start in batch tasks-${RUN}, 3 completed before`);
  },
);

test("a bad line is named with its reason, and nothing starts", async () => {
  const cwd = emptyFolder();
  const file = batchFile(cwd, `bad-${RUN}.jsonl`, [
    { task: "say: Fine." },
    { task: "say: No folder.", workspace: "not-there" },
    { task: "say: No address.", repo: "not an address" },
  ]);
  const bad = await longhaul(["batch", file], { cwd });
  expect(bad).toMatchObject({ code: 2, out: "" });
  expect(bad.err).toMatch(
    /2 lines .*nothing was.*\n.*bad-\w+\.jsonl:2: .*not-there.*\n.*bad-\w+\.jsonl:3: The repository's address /,
  );
  expect((await longhaul(["batch", "status", `bad-${RUN}`])).code).toBe(5);
});

test("failures of one kind stop it with 3, and so does its budget", async () => {
  const cwd = emptyFolder();
  const items = Array.from({ length: 4 }, (_, place) => ({ id: `i${place}`, task: "refuse" }));
  const file = batchFile(cwd, `stopping-${RUN}.jsonl`, items);
  const flags = ["--concurrency", "1", "--stop-after", "2", "--json"];
  const stopped = await longhaul(["batch", file, ...flags], { cwd });
  expect(stopped.code, stopped.err).toBe(3);
  const { status, items: ended } = parsed(stopped.out);
  expect(status).toBe("stopped");
  expect(ended.map((item) => item.status)).toEqual(["failed", "failed", "pending", "pending"]);

  const dear = batchFile(cwd, `dear-${RUN}.jsonl`, [
    { id: "a", task: "run: true\nrun: true\nsay: Over." },
    { id: "b", task: "say: Never." },
  ]);
  const spent = await longhaul(["batch", dear, "--concurrency", "1", "--max-cost", "0.000001", "--json"], {
    cwd,
  });
  expect(spent.code, spent.err).toBe(3);
  expect(parsed(spent.out).items.map((item) => item.status)).toEqual(["max_steps", "pending"]);
});

test(
  "Ctrl-C leaves it running, and cancel with its name ends it and its sessions",
  { tags: ["B4"] },
  async () => {
    const cwd = emptyFolder();
    const file = batchFile(cwd, `long-${RUN}.jsonl`, [
      { id: "a", task: "run: sleep 300\nsay: Over." },
      { id: "b", task: "say: Never." },
    ]);
    const client = starting(["batch", file, "--concurrency", "1"], { cwd });
    const session = () => statusOf(`long-${RUN}-a`).catch(() => undefined);
    await eventually("its first session runs", async () => ((await session())?.step ?? 0) > 0, 60_000);
    client.kill("SIGINT");
    const left = await client.ended;
    expect(left).toMatchObject({ code: 130, out: "" });
    expect(left.err).toContain(`batch status long-${RUN}`);
    const { workflow } = await temporal();
    const handle = workflow.getHandle(batchWorkflowId(`long-${RUN}`));
    expect((await handle.describe()).status.name).toBe("RUNNING");
    expect((await session())?.status).toBe("active");
    const other = batchFile(cwd, `long-${RUN}.jsonl`, [{ id: "c", task: "say: Other." }]);
    expect((await longhaul(["batch", other], { cwd })).code).toBe(5);

    const cancelled = await longhaul(["cancel", `long-${RUN}`, "--json"]);
    expect(cancelled.code, cancelled.err).toBe(0);
    expect(JSON.parse(cancelled.out)).toMatchObject({
      name: `long-${RUN}`,
      status: "cancelled",
      failed: 1,
      completed: 0,
    });
    expect((await session())?.status).toBe("cancelled");
    expect((await handle.describe()).status.name).toBe("CANCELLED");
    expect((await longhaul(["cancel", `long-${RUN}`])).code).toBe(5);
  },
);

test("a batch whose run was ended in Temporal is shown as that, with what to do", async () => {
  const cwd = emptyFolder();
  const name = `lost-${RUN}`;
  const following = starting(
    ["batch", batchFile(cwd, `${name}.jsonl`, [{ id: "one", task: "run: sleep 60" }])],
    { cwd },
  );
  await eventually(
    "its item runs",
    () =>
      statusOf(`${name}-one`)
        .then(() => true)
        .catch(() => false),
    60_000,
  );
  await (await temporal()).workflow.getHandle(batchWorkflowId(name)).terminate("by a test");
  const shown = await longhaul(["batch", "status", name]);
  expect(shown.out).toMatch(
    /^lost-\w+ {2}lost: .*stopped: Temporal no longer runs it; run the same file again/,
  );
  expect((await longhaul(["batch", "list"])).out).toContain(`${name}  lost:`);
  await following.ended;
  await longhaul(["cancel", `${name}-one`]);
});
