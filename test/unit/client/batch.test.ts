import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, test, vi } from "vitest";
import {
  batchLine,
  batchStatus,
  stopReason,
  streakAfter,
  type EndedItem,
} from "../../../activities/contract/batch.ts";
import {
  batchName,
  parseBatch,
  isSameBatch,
  itemSessionId,
  planBatch,
} from "../../../client/batch/batch-file.ts";
import { prepareBatch } from "../../../client/batch/prepare-batch.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const lines = (...values: unknown[]) => values.map((value) => JSON.stringify(value)).join("\n");

describe("a batch's file", () => {
  it("has one task a line; empty lines count as lines", () => {
    const { items, mistakes } = parseBatch(
      `\uFEFF${lines({ id: "a", task: "One.", model: "openai/gpt-4o" })}\r\n\n${lines({ task: "Two." })}\n`,
    );
    expect(mistakes).toEqual([]);
    expect(items).toMatchObject([
      { id: "a", task: "One.", model: "openai/gpt-4o", ordinal: 1, line: 1 },
      { id: expect.stringMatching(/^[0-9a-f]{8}$/), task: "Two.", ordinal: 2, line: 3 },
    ]);
  });

  it("derives a missing id from an item's content, so that lines can be moved", () => {
    const ids = (content: string) => parseBatch(content).items.map(({ id }) => id);
    const [one, two] = ids(lines({ task: "One." }, { task: "Two." }));
    expect(ids(lines({ task: "New." }, { task: "Two." }, { task: "One." })).slice(1)).toEqual([two, one]);
    expect(ids(lines({ task: "One." }, { task: "One." }))).toEqual([one, `${one}-2`]);
  });

  it("is refused with the line and the reason of each mistake", () => {
    const { mistakes } = parseBatch(
      [
        "{",
        lines({ task: "" }),
        lines({ id: "../x", task: "t" }),
        lines({ task: "t", tasks: 1 }),
        lines({ task: "t", repo: "r", workspace: "w" }),
        lines({ id: "a", task: "t" }, { id: "a", task: "u" }),
        lines({ task: "-" }),
        "[]",
      ].join("\n"),
    );
    expect(mistakes.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5, 7, 8, 9]);
    expect(mistakes.map(({ reason }) => reason).join("\n")).toMatch(
      /is not JSON.*\ntask: is empty\nid: must begin with.*\nunknown key tasks: did you mean task\?\nrepo and workspace exclude.*\nid: a is already used in line 6\ntask: must be text/,
    );
  });

  it("names the line of what is found only when its settings and repositories are checked", async () => {
    vi.stubEnv("LONGHAUL_NO_SETUP", undefined);
    onTestFinished(() => void vi.unstubAllEnvs());
    const folder = emptyFolder();
    const prepare = (...values: unknown[]) => {
      const path = join(folder, "tasks.jsonl");
      writeFileSync(path, lines(...values));
      return prepareBatch(path, { setup: true }, () => undefined);
    };
    // Nothing listens on port 1.
    const gone = { task: "t", repo: "https://127.0.0.1:1/acme/app.git" };
    const keyless = { task: "t", config: "keyless.yaml" };
    writeFileSync(
      join(folder, "keyless.yaml"),
      "model: far/m\nproviders: { far: { baseUrl: https://far.example/v1, keyEnv: NO_SUCH_API_KEY, api: chat } }\n",
    );
    await expect(prepare({ task: "t", workspace: "gone" }, gone, keyless, keyless)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(
        /^4 lines .*\n.*tasks\.jsonl:1: --workspace.*\n.*tasks\.jsonl:2: 127\.0\.0\.1 .*\n.*tasks\.jsonl:3: .*NO_SUCH_API_KEY.* \(also line 4\)$/,
      ) as string,
    });
    await expect(prepare(gone, keyless)).rejects.toMatchObject({ exitCode: 4 });
  });

  it("gives the batch its name", () => {
    expect(batchName(undefined, "/x/my tasks (2).jsonl")).toBe("my-tasks-2-");
    expect(batchName("nightly", "/x/y.jsonl")).toBe("nightly");
    expect(() => batchName("a:b", "/x/y.jsonl")).toThrow("cannot be a batch's name");
    expect(() => batchName(undefined, "/x/….jsonl")).toThrow("cannot serve as the batch's name");
  });
});

describe("the same file again", () => {
  const { items } = parseBatch(
    lines(...["done", "failed", "changed", "new", "runs", "waits"].map((id) => ({ id, task: id }))),
  );
  const row = (itemId: string, status: string, attempt = 1) => ({
    itemId,
    status,
    attempt,
    ordinal: 1,
    digest: items.find(({ id }) => id === itemId)?.digest ?? "",
  });
  const known = [
    row("done", "completed"),
    row("failed", "failed", 2),
    { ...row("changed", "completed"), digest: "of before" },
    row("runs", "running"),
    row("waits", "pending", 3),
    row("gone", "completed"),
  ];

  it("starts what is missing, failed or changed, and never what is completed", () => {
    const plan = planBatch(items, known);
    expect(plan.starts.map(({ item, attempt }) => `${item.id} ${attempt}`)).toEqual([
      "failed 3",
      "changed 2",
      "new 1",
      "waits 3",
    ]);
    expect(plan.places).toEqual([
      { itemId: "done", ordinal: 1 },
      { itemId: "runs", ordinal: 5 },
      { itemId: "gone", ordinal: 0 },
    ]);
    expect(plan).toMatchObject({ completed: 1, busy: [] });
  });

  it("names changed items that are still running, and tells whether it is the same file", () => {
    const busy = [{ ...row("runs", "running"), digest: "of before" }];
    expect(planBatch(items, busy).busy).toEqual(["runs"]);
    const same = items.map(({ id, digest }, place) => ({ itemId: id, digest, ordinal: place + 1 }));
    expect(isSameBatch(items, [...same, { itemId: "gone", digest: "", ordinal: 0 }])).toBe(true);
    expect(isSameBatch(items, same.slice(1))).toBe(false);
    expect(isSameBatch(items.slice(1), same)).toBe(false);
  });

  it("gives each attempt its own session", () => {
    expect([1, 2].map((attempt) => itemSessionId("nightly", "a", attempt))).toEqual([
      "nightly-a",
      "nightly-a.2",
    ]);
  });
});

const ended = (...kinds: string[]): EndedItem[] =>
  kinds.map((kind) =>
    kind === "completed" || kind === "cancelled" || kind === "max_steps"
      ? { sessionId: kind, status: kind }
      : { sessionId: kind, status: "failed", failure: kind },
  );

describe("a batch stops", () => {
  const look = (more: object) => ({
    figures: { total: 9, completed: 0, failed: 0, waits: 0, costUsd: 1 },
    ...more,
  });

  test("after the given number of failures of one kind in a row", () => {
    expect(streakAfter(ended("Key", "completed", "Key", "Key"), undefined)).toEqual({
      failure: "Key",
      count: 2,
    });
    expect(streakAfter(ended("Other"), { failure: "Key", count: 2 })).toEqual({ failure: "Other", count: 1 });
    expect(streakAfter(ended("cancelled"), { failure: "Key", count: 2 })).toEqual({
      failure: "Key",
      count: 2,
    });
    expect(streakAfter(ended("max_steps", "max_steps"), undefined)).toEqual({
      failure: "max_steps",
      count: 2,
    });
    // An item that ended together with the last one does not reset the count.
    const streak = streakAfter(ended("Key", "completed"), { failure: "Key", count: 1 }, 2);
    expect(stopReason(look({ stopAfter: 2 }), streak)).toBe("failures");
    expect(stopReason(look({ stopAfter: 3 }), streak)).toBeUndefined();
    expect(stopReason(look({}), streak)).toBeUndefined();
  });

  test("when its budget is spent", () => {
    expect(stopReason(look({ maxCostUsd: 1 }), undefined)).toBe("cost");
    expect(stopReason(look({ maxCostUsd: 1.1 }), undefined)).toBeUndefined();
  });

  test("and reports how it ended", () => {
    expect(batchStatus("done", { total: 2, completed: 2, failed: 0 })).toBe("completed");
    expect(batchStatus("done", { total: 2, completed: 1, failed: 1 })).toBe("failed");
    expect(batchStatus("failures", { total: 3, completed: 0, failed: 2 })).toBe("stopped");
    expect(batchStatus("cost", { total: 2, completed: 2, failed: 0 })).toBe("completed");
    expect(batchStatus("cancelled", { total: 2, completed: 2, failed: 0 })).toBe("cancelled");
    expect(batchLine({ total: 50, completed: 31, failed: 2, waits: 1, costUsd: 0 })).toBe(
      "31/50 completed, 2 failed, 1 waits",
    );
  });
});
