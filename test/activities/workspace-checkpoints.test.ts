import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { and, eq } from "drizzle-orm";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { restoreWorkspace } from "../../activities/workspace/workspace.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import {
  checkpointBase,
  checkpointChain,
  latestCheckpoint,
  readWorkspace,
  saveCheckpoint,
} from "../../activities/store/checkpoints.ts";
import type { Database } from "../../activities/store/db.ts";
import * as schema from "../../activities/store/schema/index.ts";
import { saveWorkspace } from "../support/save-workspace.ts";
import { useDatabase } from "../support/test-database.ts";
import { createFakeSandbox, type FakeSandbox } from "../support/fake-sandbox.ts";
import { file } from "../support/workspace-file.ts";

const database = useDatabase(2);
let db: Database;
let sandbox: FakeSandbox;
let sessionId: string;
beforeEach(async () => {
  ({ db } = database.store);
  sandbox = await createFakeSandbox();
  onTestFinished(() => sandbox.dispose());
  sessionId = randomUUID();
});

async function save(step: number, epoch = 1): Promise<number | undefined> {
  const { latest, base } = await checkpointBase(db, { sessionId, epoch, step });
  const { saved } = await saveWorkspace(sandbox, latest, { base });
  return saved && (await saveCheckpoint(db, { sessionId, epoch, step, base, ...saved }));
}

async function files(atStep?: number): Promise<Record<string, string>> {
  const read = await readWorkspace(db, sessionId, atStep === undefined ? {} : { atStep });
  return Object.fromEntries(
    (read ?? []).flatMap((file) =>
      file.kind === "file" ? [[file.path, Buffer.from(file.bytes).toString()]] : [],
    ),
  );
}

describe("checkpoints", () => {
  it("give the workspace of every step back", async () => {
    await writeFile(join(sandbox.root, "a.txt"), "1");
    await save(1);
    await writeFile(join(sandbox.root, "b.txt"), "2");
    await save(3);
    await rm(join(sandbox.root, "a.txt"));
    await save(4);
    expect(await files(1)).toEqual({ "a.txt": "1" });
    expect(await files(2)).toEqual({ "a.txt": "1" });
    expect(await files(3)).toEqual({ "a.txt": "1", "b.txt": "2" });
    expect(await files()).toEqual({ "b.txt": "2" });
    expect((await latestCheckpoint(db, sessionId))?.depth).toBe(3);
    expect(await readWorkspace(db, randomUUID())).toBeUndefined();
  });

  it("are one row a step, however often the step is saved, and lose no change", async () => {
    await writeFile(join(sandbox.root, "a.txt"), "1");
    await save(1);
    await writeFile(join(sandbox.root, "b.txt"), "2");
    const first = await save(2);
    expect(await save(2)).toBeUndefined();
    await writeFile(join(sandbox.root, "late.txt"), "from a background process");
    const second = await save(2);
    expect(second).toBe(first);
    expect(Object.keys(await files())).toEqual(["a.txt", "b.txt", "late.txt"]);
  });

  it("hold everything if the first step that was saved is saved again", async () => {
    await writeFile(join(sandbox.root, "a.txt"), "1");
    const first = await save(1);
    await writeFile(join(sandbox.root, "b.txt"), "2");
    expect(await save(1)).toBe(first);
    expect(await files()).toEqual({ "a.txt": "1", "b.txt": "2" });
  });

  it("stand once a later one builds on them: a late attempt changes nothing", async () => {
    await writeFile(join(sandbox.root, "a.txt"), "1");
    await save(1);
    const before = await latestCheckpoint(db, sessionId);
    await writeFile(join(sandbox.root, "a.txt"), "2");
    await save(2);
    const late = await packWorkspace([file("late", "late")]);
    expect(await saveCheckpoint(db, { sessionId, epoch: 1, step: 1, whole: true, ...late })).toBe(before?.id);
    expect(await files(1)).toEqual({ "a.txt": "1" });
  });

  it("of an abandoned line are not seen, and the new line continues from where it left", async () => {
    for (const step of [1, 2, 3]) {
      await writeFile(join(sandbox.root, "a.txt"), String(step));
      await save(step);
    }
    await db.update(schema.checkpoints).set({ supersededEpoch: 2 }).where(eq(schema.checkpoints.step, 3));
    expect(await files()).toEqual({ "a.txt": "2" });
    const latest = await latestCheckpoint(db, sessionId);
    await restoreWorkspace(sandbox, await checkpointChain(db, latest?.id ?? 0));
    await writeFile(join(sandbox.root, "b.txt"), "new line");
    await save(3, 2);
    expect(await files()).toEqual({ "a.txt": "2", "b.txt": "new line" });
  });

  it.each([
    ["the newest one", 3, /Save \d+ of the session's files is not in Postgres any more/],
    [
      "one on which the newest builds",
      2,
      /Save \d+ of the session's files, on which save \d+ builds, is not in/,
    ],
    ["the first one", 1, /Save \d+ of the session's files, on which save \d+ builds, is not in/],
  ])(
    "of which %s is missing are a typed failure that says what to do, never part of the files",
    async (_, gone, words) => {
      for (const step of [1, 2, 3]) {
        await writeFile(join(sandbox.root, `${step}.txt`), String(step));
        await save(step);
      }
      const latest = await latestCheckpoint(db, sessionId);
      await db
        .delete(schema.checkpoints)
        .where(and(eq(schema.checkpoints.sessionId, sessionId), eq(schema.checkpoints.step, gone)));
      const lost = {
        type: "WorkspaceLost",
        nonRetryable: true,
        message: expect.stringMatching(
          new RegExp(`${words.source}.*are kept.*retry ID --from-step N`),
        ) as string,
      };
      await expect(
        checkpointChain(db, latest?.id ?? 0).then((chain) => restoreWorkspace(sandbox, chain)),
      ).rejects.toMatchObject(lost);
      if (gone !== 3) await expect(files()).rejects.toMatchObject(lost);
      expect(await files(gone - 1)).toEqual(
        Object.fromEntries([1, 2].slice(0, gone - 1).map((step) => [`${step}.txt`, String(step)])),
      );
      // The next save needs none of them.
      await writeFile(join(sandbox.root, "4.txt"), "4");
      await save(4);
      expect(await files()).toEqual({ "1.txt": "1", "2.txt": "2", "3.txt": "3", "4.txt": "4" });
    },
  );

  it("start with what the client put in, at step 0", async () => {
    const upload = await packWorkspace([file("README.md", "# Put in")]);
    await saveCheckpoint(db, { sessionId, epoch: 1, step: 0, whole: true, ...upload });
    await restoreWorkspace(
      sandbox,
      await checkpointChain(db, (await latestCheckpoint(db, sessionId))?.id ?? 0),
    );
    expect(await save(1)).toBeUndefined();
    await writeFile(join(sandbox.root, "more.txt"), "more");
    await save(1);
    expect(await files()).toEqual({ "README.md": "# Put in", "more.txt": "more" });
    expect(await files(0)).toEqual({ "README.md": "# Put in" });
  });

  it("larger than a slice are stored and read slice by slice, and replaced as a whole", async () => {
    const contents = [randomBytes(9 * 2 ** 20), randomBytes(5 * 2 ** 20)];
    for (const bytes of contents) {
      const pack = await packWorkspace([file("large", bytes)]);
      await db.transaction((tx) =>
        saveCheckpoint(tx, { sessionId, epoch: 1, step: 1, whole: true, ...pack }),
      );
      const [read] = (await readWorkspace(db, sessionId)) ?? [];
      expect(read?.kind === "file" && Buffer.compare(read.bytes, bytes)).toBe(0);
    }
  });

  it("of a small change in 5,000 files hold the change alone", async () => {
    for (let folder = 0; folder < 50; folder++) {
      await mkdir(join(sandbox.root, `f${folder}`));
      await Promise.all(
        Array.from({ length: 100 }, async (_, at) => {
          await writeFile(join(sandbox.root, `f${folder}`, `file-${at}.txt`), `content ${at}\n`.repeat(20));
        }),
      );
    }
    await save(1);
    await writeFile(join(sandbox.root, "f7/file-3.txt"), "changed");
    const before = performance.now();
    const { latest, base } = await checkpointBase(db, { sessionId, epoch: 1, step: 2 });
    const { saved } = await saveWorkspace(sandbox, latest, { base });
    if (saved === undefined) throw new Error("Nothing was saved.");
    await saveCheckpoint(db, { sessionId, epoch: 1, step: 2, base, ...saved });
    const ms = performance.now() - before;
    console.log(`small change among 5,000 files: ${ms.toFixed(0)} ms, pack ${saved.pack.length} bytes`);
    expect(saved.changed).toBe(1);
    expect(saved.pack.length).toBeLessThan(1_000);
    expect(saved.manifest.length).toBeLessThan(100_000);
  });
});
