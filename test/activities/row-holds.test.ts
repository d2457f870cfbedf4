/** The tests' own holds: each waits for what is written in its own database only. */
import { randomUUID } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { eventually } from "../support/eventually.ts";
import { createRowHolds } from "../support/crash/row-holds.ts";
import { createTestDatabase } from "../support/test-database.ts";
import { appendEvents } from "../../activities/store/events.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { runConfig } from "../support/agent-harness.ts";

async function heldDatabase() {
  const database = await createTestDatabase(2);
  onTestFinished(() => database.drop());
  const holds = await createRowHolds(database);
  onTestFinished(() => holds.close());
  const id = randomUUID();
  await createSession(database.store, { id, task: "Wait.", config: runConfig() });
  const hold = await holds.hold(id, { table: "events", match: { type: "sandbox:parked" } });
  const write = () =>
    database.store.db.transaction((tx) =>
      appendEvents(tx, id, 0, [{ type: "sandbox:parked", step: 1, data: { container: "box" } }]),
    );
  return { hold, write };
}

it("a hold is reached by its own database's write, not by another's of the same number", async () => {
  const [one, other] = [await heldDatabase(), await heldDatabase()];
  const written = one.write().then(
    () => "kept",
    () => "lost",
  );
  await eventually("the write waits", () => one.hold.reached());
  expect(await other.hold.reached()).toBe(false);
  await other.hold.release("lost");
  await one.hold.release("kept");
  expect(await written).toBe("kept");
});
