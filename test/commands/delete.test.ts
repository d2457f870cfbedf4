import { expect, test } from "vitest";
import { begin, longhaul, temporal, untilStatus } from "../support/commands/longhaul.ts";
import { eventually } from "../support/eventually.ts";

test("deletes a session that does not run, with its history, and reports later who did", async () => {
  const id = await begin("run: touch /tmp/go && sleep 600\nsay: Done.");
  await untilStatus(id, ({ step }) => step > 0);
  const as = { environment: { LONGHAUL_USER: "carol" } };
  const early = await longhaul(["delete", id, "--yes"], as);
  expect(early).toMatchObject({ code: 5, out: "" });
  expect(early.err).toContain(`cancel ${id}`);
  expect((await longhaul(["cancel", id])).code).toBe(0);
  expect(await longhaul(["delete", id], as)).toMatchObject({ code: 2 });

  const deleted = await longhaul(["delete", id, "--yes", "--json"], as);
  expect(deleted.code).toBe(0);
  expect(JSON.parse(deleted.out)).toMatchObject({ id, deleted: [id], histories: { deleted: 1, left: 0 } });
  const status = await longhaul(["status", id]);
  expect(status.code).toBe(5);
  expect(status.err).toContain("It was deleted by carol");
  const { workflow } = await temporal();
  // The server deletes a run with a delay, after its other tasks of the run's end.
  await eventually(
    "Temporal has forgotten it",
    () =>
      workflow
        .getHandle(id)
        .describe()
        .then(
          () => false,
          () => true,
        ),
    90_000,
  );
});
