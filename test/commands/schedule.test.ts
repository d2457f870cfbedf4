import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { deleteSchedule, readSchedules } from "../../client/schedules/schedules.ts";
import {
  inThisProcess,
  longhaul,
  statusOf,
  untilRunning,
  untilStatus,
} from "../support/commands/longhaul.ts";

const schedule = (...words: string[]) => longhaul(["schedule", ...words]);
const listed = async (name: string) =>
  (await inThisProcess(readSchedules)).find((schedule) => schedule.name === name);

test("a schedule starts sessions by its rules, and can be paused, resumed and deleted [B5]", async () => {
  const name = `nightly-${randomBytes(3).toString("hex")}`;
  const task = "run: sleep 300\nrun: sleep 300\nrun: sleep 300\nsay: Over.";
  const flags = ["--cron", "0 6 1 1 *", "--time-zone", "Europe/Berlin", "--max-steps", "7"];
  const as = { environment: { LONGHAUL_USER: "carol" } };
  const made = await longhaul(["schedule", "create", name, ...flags, "--", task], as);
  expect(made.code, made.err).toBe(0);
  expect(made.err).toContain("Its times are in the zone Europe/Berlin.");
  expect(made.err).not.toContain("--time-zone");
  onTestFinished(() => inThisProcess((services) => deleteSchedule(services, name)).catch(() => undefined));
  expect((await schedule("create", name, ...flags, "--", task)).code).toBe(5);
  expect(await listed(name)).toMatchObject({
    state: "active",
    cron: "0 6 1 1 *",
    timeZone: "Europe/Berlin",
    overlap: "skip",
    next: expect.stringMatching(/-01-01T05:00:00/),
    last: null,
    task,
  });

  const run = await schedule("run", name);
  expect(run.code, run.err).toBe(0);
  const id = run.out.trim();
  expect(id).toMatch(new RegExp(`^${name}-\\d{4}-\\d\\d-\\d\\dT[\\d:]+Z$`));
  await untilRunning(id);
  expect(await statusOf(id)).toMatchObject({ task, maxSteps: 7, owner: "carol" });
  // The session of the previous start is running.
  const again = await schedule("run", name);
  expect(again).toMatchObject({ code: 5, out: "" });
  expect(await listed(name)).toMatchObject({ running: [id] });

  expect((await schedule("pause", name)).code).toBe(0);
  expect((await schedule("list")).out).toMatch(
    new RegExp(`^${name} {2}paused {2}0 6 1 1 \\* Europe/Berlin`, "m"),
  );
  expect((await schedule("resume", name)).code).toBe(0);
  expect(await listed(name)).toMatchObject({ state: "active" });
  expect((await schedule("delete", name)).code).toBe(0);
  expect(await listed(name)).toBeUndefined();
  expect((await schedule("run", name)).code).toBe(5);
  expect((await statusOf(id)).status).toBe("active");
  await longhaul(["cancel", id]);
  expect((await untilStatus(id, ({ status }) => status !== "active")).status).toBe("cancelled");
}, 240_000);

test("without a zone the times are in UTC, and it is said how to choose another", async () => {
  const name = `utc-${randomBytes(3).toString("hex")}`;
  onTestFinished(() => inThisProcess((services) => deleteSchedule(services, name)).catch(() => undefined));
  const environment = { TZ: "America/Lima" };
  const words = ["schedule", "create", name, "--cron", "0 6 1 1 *", "--", "say: Never."];
  const { code, err } = await longhaul(words, { environment });
  expect(code, err).toBe(0);
  expect(err).toContain("Its times are in the zone UTC.");
  expect(err).toContain("--time-zone America/Lima");
  expect(await listed(name)).toMatchObject({ timeZone: "UTC" });
});

test("times that Temporal refuses are refused with 2, and leave nothing", async () => {
  const name = `bad-${randomBytes(3).toString("hex")}`;
  const bad = await schedule("create", name, "--cron", "61 25 * * *", "--", "say: Never.");
  expect(bad).toMatchObject({ code: 2, out: "" });
  expect(bad.err).toContain("61 25 * * *");
  const zone = await schedule(
    "create",
    name,
    "--cron",
    "0 6 * * *",
    "--time-zone",
    "Mars/Base",
    "--",
    "say: Never.",
  );
  expect(zone.code, zone.err).toBe(2);
  expect(zone.err).toContain("does not know the time zone Mars/Base");
  expect((await schedule("create", name, "--", "say: Never.")).code).toBe(2);
  expect((await schedule("every", name)).code).toBe(2);
  expect(await listed(name)).toBeUndefined();
});
