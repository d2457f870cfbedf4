/** A worker dies while it works for a delegate. */
import type Dockerode from "dockerode";
import { expect, it } from "vitest";
import { delegating, delegationsOf } from "../support/delegating.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { inContainer } from "../support/in-container.ts";
import { resultTexts } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();

/** Of a command in a sandbox; nothing while there is no sandbox. */
const outputOf = (sandbox: Dockerode.Container, command: string) =>
  inContainer(sandbox, command).catch(() => "");
/** So many files that merging them takes a while. */
const MANY = 300;

it("a delegate's files are merged once, by the worker that follows one killed in the merge", async () => {
  const script = scriptedModel()
    .calls("delegate", { task: "Write many files.", access: "write" })
    .calls("bash", { command: `for n in $(seq ${MANY}); do echo line > file-$n.txt; done` })
    .says("They are written.")
    .calls("bash", { command: "ls | wc -l; sort -u file-*.txt" })
    .says("Done.");
  const session = await startKillableSession(database, script, { config: delegating() });
  const worker = await session.startWorker();
  const count = async () => Number((await outputOf(session.sandbox, "ls /workspace | wc -l")).trim());
  await eventually("some files are applied", async () => (await count()) > 0, 120_000);
  await worker.kill();
  expect(await count()).toBeLessThan(MANY);
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Done." });
  const [result, seen] = await resultTexts(database.store, session.id);
  expect(result).toContain(`Files applied (${MANY})`);
  expect(seen).toBe(`${MANY}\nline`);
  expect(await delegationsOf(database.store, session.id)).toMatchObject([{ status: "applied" }]);
  expect(session.model.requests).toHaveLength(5);
});
