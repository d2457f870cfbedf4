/** What is removed of the boxes that killed workers left, by real runs in Temporal and real boxes. */
import { randomBytes } from "node:crypto";
import { Client, Connection } from "@temporalio/client";
import { pino } from "pino";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { recordBox } from "../../activities/store/boxes.ts";
import { createSession, findSession, setContainer } from "../../activities/store/sessions.ts";
import { boxName, createOptions } from "../../activities/sandbox/profile.ts";
import { reapBoxes } from "../../worker/reaper.ts";
import { runConfig } from "../support/agent-harness.ts";
import { createTestBoxes, type TestBoxes } from "../support/test-boxes.ts";
import { createTestDatabase, type TestDatabase } from "../support/test-database.ts";

let boxes: TestBoxes;
let database: TestDatabase;
let connection: Connection;
let client: Client;
beforeAll(async () => {
  boxes = createTestBoxes();
  database = await createTestDatabase(4);
  connection = await Connection.connect({ address: inject("temporalAddress") });
  client = new Client({ connection });
});
afterAll(async () => {
  await connection.close();
  await boxes.dispose();
  await database.drop();
});

/** A session with a run that nobody serves. */
async function running(id: string) {
  await createSession(database.store, { id, task: "Wait.", config: runConfig() });
  const taskQueue = `nobody-${randomBytes(4).toString("hex")}`;
  return client.workflow.start("codingAgent", { workflowId: id, taskQueue, args: [{}] });
}

it("boxes of runs that are over go, also those that never ran; of running, unknown and foreign ones none; what moved to another host goes there [A21] [R12] [R58]", async () => {
  const { host, docker } = boxes;
  const { db } = database.store;
  const [over, created, alive, unknown, moved] = Array.from({ length: 5 }, () => boxes.spec());
  if (!over || !created || !alive || !unknown || !moved) throw new Error("No specs.");
  const runs = await Promise.all([over, created, alive, moved].map(({ sessionId }) => running(sessionId)));
  for (const spec of [over, alive, unknown, moved]) {
    const { container, identity } = await host.open(spec);
    if (spec === unknown) continue;
    const volume = spec === moved ? "on another host" : identity.volume;
    await recordBox(db, spec.sessionId, { ...identity, volume, taskQueue: undefined });
    await setContainer(db, spec.sessionId, container, "x");
  }
  await docker.createContainer(createOptions(created, new Date()));
  const foreign = await docker.createContainer({
    Image: over.image,
    Cmd: ["true"],
    Labels: { "somebody.session": over.sessionId },
  });
  await runs[0]?.terminate("from the Web UI");
  await runs[1]?.terminate("from the Web UI");

  const options = { host, store: database.store, client, logger: pino({ level: "silent" }) };
  const removed = await reapBoxes(options);
  const ours = new Set([over, created, alive, unknown, moved].map(({ sessionId }) => sessionId));
  expect(removed.filter((id) => ours.has(id)).toSorted()).toEqual(
    [over, created, moved].map(({ sessionId }) => sessionId).toSorted(),
  );
  const isThere = ({ sessionId }: { sessionId: string }) =>
    docker
      .getContainer(boxName(sessionId))
      .inspect()
      .then(
        () => true,
        () => false,
      );
  expect(await Promise.all([over, created, alive, unknown, moved].map(isThere))).toEqual([
    false,
    false,
    true,
    true,
    false,
  ]);
  expect((await foreign.inspect()).State.Status).toBe("created");
  await foreign.remove();
  expect(await findSession(db, over.sessionId)).toMatchObject({ status: "cancelled", container: undefined });
  expect(await findSession(db, alive.sessionId)).toMatchObject({ status: "active" });
  expect(await reapBoxes(options)).not.toContain(alive.sessionId);
  await Promise.all([runs[2]?.terminate("the test is over"), runs[3]?.terminate("the test is over")]);
}, 240_000);
