/** What deleting a session takes away, and what it leaves. */
import { randomBytes } from "node:crypto";
import { eq, isNull, sql } from "drizzle-orm";
import { expect, it } from "vitest";
import { openBatch, saveItem } from "../../activities/store/batches.ts";
import type { FilePart } from "../../activities/contract/message.ts";
import { dropBlobs, loadBlobs, saveBlob, saveBlobFor } from "../../activities/store/blobs.ts";
import { readWorkspace, saveCheckpoint, checkpointBase } from "../../activities/store/checkpoints.ts";
import { copyNewestFiles } from "../../activities/store/delegations.ts";
import {
  deletedHashes,
  deleteFamily,
  findDeleted,
  readFamily,
} from "../../activities/store/delete-session.ts";
import { sessionTables } from "../../activities/store/session-tables.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { storeFullOutput } from "../../activities/runtime/full-output.ts";
import { purgeText } from "../../activities/store/purge.ts";
import { appendEvents } from "../../activities/store/events.ts";
import { copySessionLine } from "../../activities/store/fork.ts";
import { receiveGuidance } from "../../activities/store/guidance.ts";
import { sessions, toolOutputs } from "../../activities/store/schema/index.ts";
import { beginFollow, endFollow } from "../../activities/store/follows.ts";
import { createSessionMemory } from "../../activities/store/transcript-search.ts";
import {
  aloneOverWorkers,
  dropOldOutputs,
  dropUnstarted,
  endedLongAgo,
  OUTPUT_REMOVED,
} from "../../activities/store/retention.ts";
import { withSandboxLock } from "../../activities/store/session-locks.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { packWorkspace, type WorkspaceFile } from "../../activities/store/workspace-pack.ts";
import { toFolderName } from "../../activities/git/own-repositories.ts";
import { runConfig } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import { wholeDatabase } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase(4);
const config = runConfig();
const idOf = (data: string) => data.slice("@blob:".length);

it("outputs that are old enough become a line, and sessions that are go; others stay", async () => {
  const { db } = database.store;
  const output = { handle: "s1c0", offset: 0 };
  for (const [id, days] of [
    ["old", 10],
    ["new", 1],
    ["open", undefined],
  ] as const) {
    await createSession(database.store, { id, task: "Print.", config });
    const endedAt = days === undefined ? null : sql`now() - ${days} * interval '1 day'`;
    await db.update(sessions).set({ endedAt }).where(eq(sessions.id, id));
    await db.insert(toolOutputs).values([
      { ...output, sessionId: id, part: 0, content: "first" },
      { ...output, sessionId: id, part: 1, offset: 5, content: "second" },
    ]);
  }
  expect(await dropOldOutputs(db, 5, 10)).toBe(1);
  expect(await dropOldOutputs(db, 5, 10)).toBe(0);
  const read = (id: string) => createSessionMemory(db, id).readOutput("s1c0", 0, 1_000);
  expect(await read("old")).toMatchObject({ text: OUTPUT_REMOVED });
  expect(await read("new")).toMatchObject({ text: "firstsecond" });
  expect(await endedLongAgo(db, 5, 10)).toEqual(["old"]);
  // One whose pull request is followed stays until that is over.
  const followed = { sessionId: "old", forge: "f", project: "p", number: 1, url: "u", branch: "b" };
  await beginFollow(db, {
    ...followed,
    roundsFrom: 0,
    roundsUpTo: 1,
    maxCostUsd: 1,
    openedAt: new Date(),
    until: new Date(),
  });
  expect(await endedLongAgo(db, 5, 10)).toEqual([]);
  await endFollow(db, "old", { end: "closed", why: undefined });
  expect(await endedLongAgo(db, 5, 10)).toEqual(["old"]);
  let inner = false;
  await aloneOverWorkers(db, () => aloneOverWorkers(db, async () => void (inner = true)));
  expect(inner).toBe(false);
  for (const id of ["old", "new", "open"])
    expect(await deleteFamily(db, await readFamily(db, id), "us")).toMatchObject({ kind: "deleted" });
});

it("a session stores whole outputs up to a bound, and reports later ones as not kept", async () => {
  const { store } = database;
  await createSession(store, { id: "full", task: "Print.", config });
  const deps = { store, sanitizer: createSanitizer([]) };
  const piece = async function* () {
    yield randomBytes(3_000).toString("hex");
  };
  await storeFullOutput(deps, { sessionId: "full", handle: "s1c0" }, piece(), 2_000);
  await storeFullOutput(deps, { sessionId: "full", handle: "s2c0" }, piece(), 2_000);
  const read = async (handle: string) =>
    (await createSessionMemory(store.db, "full").readOutput(handle, 0, 10_000))?.text;
  expect(await read("s1c0")).toHaveLength(6_000);
  expect(await read("s2c0")).toContain("This output was not kept");
  await deleteFamily(store.db, await readFamily(store.db, "full"), undefined);
});

it("a leaked text is taken out of every row; what still has it is named", async () => {
  const { store } = database;
  const { db } = store;
  const secret = 'sk-"leaked"-12345';
  const long = await saveBlob(db, Buffer.from(`a long text with ${secret}`), "text/plain");
  const image = await saveBlob(db, Buffer.from(`PNG ${secret}`), "image/png");
  const workspace = await packWorkspace([file("clean.txt"), file(".env", `KEY=${secret}`)]);
  await createSession(store, {
    id: "leaky",
    task: `Use ${secret}.`,
    config,
    parts: [long, image],
    workspace,
  });
  await createSession(store, { id: "apart", task: `Use ${secret}.`, config });
  const output = { sessionId: "leaky", handle: "s1c0" };
  await db.insert(toolOutputs).values([
    { ...output, part: 0, offset: 0, content: `${secret} and sk-"lea` },
    { ...output, part: 1, offset: 29, content: 'ked"-12345 end' },
  ]);
  const input = JSON.stringify({ command: `echo '${secret}'` });
  const call = { callId: "c", index: 0, name: "bash", about: secret, inputCut: input };
  await appendEvents(db, "leaky", 1, [{ type: "llm:tool-call", step: 1, data: call }]);
  const purged = await purgeText(db, await readFamily(db, "leaky"), secret);
  expect(purged).toMatchObject({ files: 1, saves: [{ id: "leaky", steps: [0] }] });
  expect(purged?.rows).toBeGreaterThanOrEqual(5);
  const rows = (await wholeDatabase(store)).split("\n");
  const leaks = rows.filter((row) => /leaked|ked.*-12345/.test(row));
  expect(leaks.filter((row) => !row.includes("apart"))).toEqual([]);
  const read = await createSessionMemory(db, "leaky").readOutput("s1c0", 0, 1_000);
  expect(read?.text).toBe(`${"*".repeat(17)} and ${"*".repeat(17)} end`);
  expect(rows.some((row) => row.includes("apart") && row.includes("leaked"))).toBe(true);
});

it("files of starts that never happened go after a day; a session's and a batch's stay", async () => {
  const { store } = database;
  const { db } = store;
  await createSession(store, { id: "begun", task: "Look.", config });
  await openBatch(db, { id: "later", owner: null, concurrency: 1, stopAfter: null, maxCostUsd: null });
  const item = { itemId: "i", ordinal: 1, digest: "", sessionId: "later-i", attempt: 1 };
  await saveItem(db, "later", { ...item, start: { task: "Later.", config }, workspace: undefined });
  const parts: FilePart[] = [];
  for (const id of ["begun", "later-i", "never", "today"])
    parts.push(await saveBlobFor(db, id, { bytes: Buffer.from(`of ${id}`), mediaType: "text/plain" }));
  await db.execute(sql`update blob_uses set kept_at = now() - interval '2 days' where session_id <> 'today'`);
  expect(await dropUnstarted(db, 50)).toBe(1);
  const ids = parts.map(({ data }) => idOf(data));
  const kept = [...(await loadBlobs(db, ids)).values()].map(String);
  expect(kept.toSorted()).toEqual(["of begun", "of later-i", "of today"]);
});

it("a session's file stays while its message is on its way, whatever happens to the same bytes", async () => {
  const { store } = database;
  const { db } = store;
  const secret = "sk-on-its-way-12345";
  const files = ["text/plain", "image/png"].flatMap((mediaType) =>
    ["queue", "batch", "nobody"].map((holder) => ({
      holder,
      mediaType,
      bytes: Buffer.from(`${mediaType} ${holder} ${secret}`),
    })),
  );
  for (const id of ["queue", "deleted", "purged"]) await createSession(store, { id, task: "Look.", config });
  await openBatch(db, { id: "b", owner: null, concurrency: 1, stopAfter: null, maxCostUsd: null });
  const parts: FilePart[] = [];
  for (const { holder, ...one } of files) {
    if (holder === "queue") await saveBlobFor(db, holder, one);
    for (const id of ["deleted", "purged"]) parts.push(await saveBlobFor(db, id, one));
  }
  await receiveGuidance(db, "purged", [{ id: "p", parts, queuedAt: "2026-01-01T00:00:00Z" }]);
  const waiting = parts.filter((_, index) => files[Math.floor(index / 2)]?.holder === "batch");
  const start = { task: "Later.", config, parts: waiting };
  const item = { itemId: "i", ordinal: 1, digest: "", sessionId: "b-i", attempt: 1, start };
  await saveItem(db, "b", { ...item, workspace: undefined });
  // The others end later than the files were sent.
  await db.update(sessions).set({ endedAt: sql`now() + interval '1 minute'` });

  expect(await purgeText(db, await readFamily(db, "purged"), secret)).toMatchObject({ files: 3 });
  for (const id of ["deleted", "purged"])
    expect(await deleteFamily(db, await readFamily(db, id), undefined)).toMatchObject({ kind: "deleted" });
  const kept = await loadBlobs(
    db,
    parts.map(({ data }) => idOf(data)),
  );
  const left = [...kept.values()].map(String).toSorted();
  const wanted = files.filter(({ holder }) => holder !== "nobody").map(({ bytes }) => String(bytes));
  expect(left).toEqual(wanted.toSorted());
  expect((await wholeDatabase(store)).includes("queue [purged]")).toBe(false);

  // The last session that has the bytes takes them with it.
  await deleteFamily(db, await readFamily(db, "queue"), undefined);
  expect([...(await loadBlobs(db, [...kept.keys()])).values()].map(String).toSorted()).toEqual(
    wanted.filter((words) => words.includes("batch")).toSorted(),
  );
});

it("bytes that are saved while they are removed are there afterwards", async () => {
  const { store } = database;
  const { db } = store;
  for (const order of ["saved first", "removed first"]) {
    const bytes = Buffer.from(`the same bytes, ${order}`);
    const file = { bytes, mediaType: "text/plain" };
    const { data } = await saveBlobFor(db, "before", file);
    await createSession(store, { id: "before", task: "Look.", config });
    const family = await readFamily(db, "before");
    let other: Promise<unknown> = Promise.resolve();
    await db.transaction(async (tx) => {
      if (order === "saved first") await saveBlobFor(tx, "after", file);
      else await tx.execute(sql`select 1 from blobs for update`);
      other = order === "saved first" ? deleteFamily(db, family, undefined) : saveBlobFor(db, "after", file);
      await eventually("one waits for the other", async () => {
        const { rows } = await db.execute(
          sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows.length > 0 ? true : undefined;
      });
      if (order === "removed first") {
        await tx.execute(sql`delete from blob_uses where session_id = 'before'`);
        await dropBlobs(tx, [idOf(data)]);
      }
    });
    await other;
    expect((await loadBlobs(db, [idOf(data)])).size, order).toBe(1);
    await deleteFamily(db, await readFamily(db, "before"), undefined);
  }
});

it("a text is not taken out of a session that a run claims meanwhile", async () => {
  const { store } = database;
  const { db } = store;
  await createSession(store, { id: "resumed", task: "Use sk-resumed-12345.", config });
  const family = await readFamily(db, "resumed");
  let purge: ReturnType<typeof purgeText> = Promise.resolve(undefined);
  await withSandboxLock(store, "resumed", async (tx) => {
    purge = purgeText(db, family, "sk-resumed-12345");
    await tx.update(sessions).set({ runId: "another" }).where(eq(sessions.id, "resumed"));
  });
  expect(await purge).toBeUndefined();
  expect(await wholeDatabase(store)).toContain("sk-resumed-12345");
  expect(await purgeText(db, await readFamily(db, "resumed"), "sk-resumed-12345")).toMatchObject({
    files: 0,
  });
  expect(await wholeDatabase(store)).not.toContain("sk-resumed-12345");
});

const file = (path: string, text = path): WorkspaceFile => ({
  kind: "file",
  path,
  mode: 0o644,
  bytes: Buffer.from(text),
  mtimeMs: 1_000,
});
const pathsOf = async (id: string) =>
  (await readWorkspace(database.store.db, id))?.map(({ path }) => path).toSorted();

it("a session goes with its delegates and all their rows; others keep what they share", async () => {
  const { store } = database;
  const { db } = store;
  const bytes = (text: string) => Buffer.from(text);
  const own = await saveBlob(db, bytes("only here"), "text/plain");
  const shared = await saveBlob(db, bytes("here and there"), "text/plain");
  const waiting = await saveBlob(db, bytes("in a message that waits"), "text/plain");
  const workspace = await packWorkspace([file("first.txt")]);
  const gone = { id: "gone", task: "Go.", config, owner: "alice", workspace, parts: [own, shared, waiting] };
  await createSession(store, gone);
  const at = { sessionId: "gone", epoch: 1, step: 1 };
  const { base } = await checkpointBase(db, at);
  const both = await packWorkspace([file("first.txt"), file("second.txt")]);
  await saveCheckpoint(db, { ...at, base, whole: false, ...both });
  await createSession(store, {
    id: "gone.s1c0",
    task: "Help.",
    config,
    owner: "alice",
    parent: { id: "gone", call: "s1c0", epoch: 1, access: "write" },
  });
  await copyNewestFiles(db, "gone", "gone.s1c0");
  await appendEvents(db, "gone", 1, [{ type: "message:withdrawn", step: 1, data: { id: "m" } }]);
  await createSession(store, { id: "other", task: "Stay.", config, parts: [shared] });
  await receiveGuidance(db, "other", [{ id: "w", parts: [waiting], queuedAt: "2026-01-01T00:00:00Z" }]);
  expect(await copySessionLine(store, { from: "gone.s1c0", to: "fork", beforeStep: 1 })).toEqual({
    kind: "forked",
  });
  const files = await pathsOf("fork");
  expect(files).toEqual(["first.txt", "second.txt"]);

  const before = await readFamily(db, "gone");
  expect(before.map(({ id }) => id)).toEqual(["gone", "gone.s1c0"]);
  await db.update(sessions).set({ endedAt: new Date() }).where(isNull(sessions.endedAt));
  // It was another one when it was looked at.
  expect(await deleteFamily(db, before, "bob")).toEqual({ kind: "changed" });
  const family = await readFamily(db, "gone");
  expect(await deleteFamily(db, family, "bob")).toMatchObject({
    kind: "deleted",
    ids: ["gone", "gone.s1c0"],
  });

  expect(await pathsOf("fork")).toEqual(files);
  const ids = [own, shared, waiting].map(({ data }) => idOf(data));
  expect([...(await loadBlobs(db, ids)).keys()].toSorted()).toEqual(ids.slice(1).toSorted());
  expect(await findDeleted(db, "gone")).toMatchObject({ deletedBy: "bob" });
  expect(await deletedHashes(db, [toFolderName("gone"), toFolderName("other")])).toEqual([
    toFolderName("gone"),
  ]);
  expect(sessionTables().length).toBeGreaterThan(15);
  const left = (await wholeDatabase(store)).split("\n").filter((row) => /gone/.test(row));
  expect(left.filter((row) => !/,bob\)$|continues from an earlier point/.test(row))).toEqual([]);

  // Of the fork nothing else was shared: its rows take the last of the files with them.
  expect(await deleteFamily(db, await readFamily(db, "fork"), undefined)).toMatchObject({ kind: "deleted" });
  expect(await pathsOf("fork")).toBeUndefined();
});
