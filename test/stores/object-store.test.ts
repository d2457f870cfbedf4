/** Saves that are too large for Postgres, in a real object store. */
import { randomBytes } from "node:crypto";
import { eq } from "drizzle-orm";
import { expect, it, onTestFinished } from "vitest";
import { holdPack, removeUnusedObjects } from "../../activities/store/stored-objects.ts";
import { openObjectStore, readStoreAddress } from "../../activities/store/object-store.ts";
import { readWorkspace, saveCheckpoint } from "../../activities/store/checkpoints.ts";
import { openStore } from "../../activities/store/db.ts";
import { checkpoints, storedObjects } from "../../activities/store/schema/index.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { checkObjectStore } from "../../temporal/object-store-probe.ts";
import { useAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { perFile } from "../support/per-file.ts";
import { removeBox } from "../support/remove-box.ts";
import { startS3Gateway } from "../support/s3-gateway.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { startRunFor } from "../support/start-run.ts";
import { resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { file } from "../support/workspace-file.ts";

const gateway = perFile(startS3Gateway, (made) => made.close());
const MIB = 2 ** 20;

/** Of a save with this many random bytes, which do not become fewer. */
const packOf = async (bytes: number) => {
  const { manifest, pack } = await packWorkspace([file("big.bin", randomBytes(bytes))]);
  return { manifest, pack: { byteLength: pack.byteLength, pieces: () => [pack] }, whole: true };
};

const database = useDatabase();

function storeWith(objects = gateway.objects) {
  const store = openStore({ url: database.url, objects, maxConnections: 3 });
  onTestFinished(() => store.close());
  return store;
}

it("has a large pack, and Postgres the row; a small pack stays there", async () => {
  const { db } = storeWith();
  for (const [sessionId, bytes] of [
    ["large", 3 * MIB],
    ["small", 1_000],
  ] as const) {
    const save = await packOf(bytes);
    const held = await holdPack(db, save.pack);
    await db.transaction((tx) => saveCheckpoint(tx, { ...save, pack: held, sessionId, epoch: 1, step: 1 }));
    const [read] = (await readWorkspace(db, sessionId)) ?? [];
    expect(read?.kind === "file" && read.bytes.byteLength).toBe(bytes);
  }
  const rows = await db.select().from(checkpoints).orderBy(checkpoints.sessionId);
  expect(rows.map(({ pack, packObject }) => [pack.byteLength > 0, packObject !== null])).toEqual([
    [false, true],
    [true, false],
  ]);
  expect(gateway.keys()).toEqual([rows[0]?.packObject]);
  // Nobody reads it without the store, and nobody is told nonsense.
  await expect(readWorkspace(database.store.db, "large")).rejects.toThrow("LONGHAUL_STORE is not set here");
  await gateway.objects.remove(gateway.keys());
  await expect(readWorkspace(db, "large")).rejects.toMatchObject({ type: "WorkspaceLost" });
  await db.delete(checkpoints);
  await db.delete(storedObjects);
});

it("keeps what a save names, or what is just being uploaded, and loses the rest", async () => {
  const { db } = storeWith();
  const save = await packOf(MIB);
  const named = await holdPack(db, save.pack);
  await holdPack(db, save.pack);
  await db.transaction((tx) =>
    saveCheckpoint(tx, { ...save, pack: named, sessionId: "named", epoch: 1, step: 1 }),
  );
  expect(await removeUnusedObjects(db)).toBe(0);
  expect(gateway.keys()).toHaveLength(2);
  // A worker died in the upload.
  await db.execute("update stored_objects set created_at = now() - interval '25 hours' where not is_used");
  expect(await removeUnusedObjects(db)).toBe(1);
  expect(gateway.keys()).toHaveLength(1);
  expect(await readWorkspace(db, "named")).toHaveLength(1);
  await db.delete(checkpoints).where(eq(checkpoints.sessionId, "named"));
  expect(await removeUnusedObjects(db)).toBe(1);
  expect(gateway.keys()).toEqual([]);
});

it.each([
  ["wrong credentials", (ours: string) => ours, "not-the-secret", /signature|SignatureDoesNotMatch|denied/i],
  ["no such bucket", (ours: string) => ours.replace("saves", "absent"), undefined, /bucket/i],
  ["nobody there", () => "s3://saves?endpoint=http://127.0.0.1:9", undefined, /ECONNREFUSED/],
] as const)("says at once that it cannot be used: %s", async (_what, address, secret, words) => {
  const before = process.env["AWS_SECRET_ACCESS_KEY"];
  if (secret !== undefined) process.env["AWS_SECRET_ACCESS_KEY"] = secret;
  onTestFinished(() => void (process.env["AWS_SECRET_ACCESS_KEY"] = before));
  const objects = openObjectStore(address(gateway.address));
  await expect(checkObjectStore(objects)).rejects.toThrow(words);
  await expect(checkObjectStore(objects)).rejects.toMatchObject({ name: "ServiceMissing" });
});

it.each(["http://x", "s3://", "s3://b?secret=x", "s3://b?endpoint=ftp://x", "bucket"])(
  "%s is no address of one",
  (address) => {
    expect(() => readStoreAddress(address)).toThrow(RangeError);
  },
);

const SUM = "exec 2>&1; sha256sum big.bin | cut -c1-16; ls";
const agent = useAgent();

it("a session's files of more than 256 MiB outlive its sandbox", async () => {
  const make = `head -c ${300 * MIB} /dev/urandom > big.bin; ${SUM}`;
  const script = scriptedModel().calls("bash", { command: make }).says("One.");
  script.calls("bash", { command: SUM }).says("Two.").calls("bash", { command: SUM }).says("Three.");
  const { environment } = gateway;
  const session = await startKillableSession(agent.database, script, { environment });
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  expect(await session.dataOf("sandbox:left-out")).toEqual([]);
  await removeBox(agent.docker, session.id);
  const { client } = session.services;
  const next = await startRunFor(client, session.id, session.id, { id: "look", text: "Look." });
  expect(await next.result()).toMatchObject({ result: "Two." });
  const results = await resultTexts(agent.database.store, session.id);
  // Without how long it took.
  const [made, seen] = results.map((text) => text.split("\n").slice(0, 2));
  expect(seen).toEqual(made);
  expect(gateway.keys()).toHaveLength(1);
  const { services } = session;
  const store = openStore({ url: agent.database.url, objects: gateway.objects, maxConnections: 3 });
  onTestFinished(() => store.close());
  await checkSession({ ...services, database: { ...services.database, store } }, session);
});
