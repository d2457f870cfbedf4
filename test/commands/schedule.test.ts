import { randomBytes } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { createSchedule, removeSchedule } from "../../activities/store/batches.ts";
import type { Services } from "../../client/connect/connection.ts";
import { makeSchedule } from "../../client/schedules/make-schedule.ts";
import { deleteSchedule, readSchedules } from "../../client/schedules/schedules.ts";
import {
  inThisProcess,
  longhaul,
  statusOf,
  untilRunning,
  untilStatus,
} from "../support/commands/longhaul.ts";
import { directConfig } from "../support/direct-agent.ts";
import { eventually } from "../support/eventually.ts";

const schedule = (...words: string[]) => longhaul(["schedule", ...words]);
const listed = async (name: string) =>
  (await inThisProcess(readSchedules)).find((schedule) => schedule.name === name);

test(
  "a schedule starts sessions by its rules, and can be paused, resumed and deleted",
  { tags: ["B5"], timeout: 240_000 },
  async () => {
    const name = `nightly-${randomBytes(3).toString("hex")}`;
    const task = "run: sleep 300\nrun: sleep 300\nrun: sleep 300\nsay: Over.";
    const flags = ["--cron", "0 6 1 1 *", "--time-zone", "Europe/Berlin", "--max-steps", "7"];
    const as = { environment: { LONGHAUL_USER: "carol" } };
    const made = await longhaul(["schedule", "create", name, ...flags, "--", task], as);
    expect(made.code, made.err).toBe(0);
    expect(made.err).toContain("Its times are in the zone Europe/Berlin.");
    expect(made.err).toMatch(/Next: \d{4}-01-01 06:00, \d{4}-01-01 06:00, \d{4}-01-01 06:00\./);
    expect(made.err).not.toContain("--time-zone");
    expect(made.err).toContain(
      "Each of its sessions may cost at most $10.00; --max-cost sets another limit.",
    );
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
      limits: { maxCostUsd: 10, maxSteps: 7 },
    });
    expect((await schedule("list")).out).toContain("at most $10.00 and 7 steps each");

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
  },
);

test("without a zone the times are in UTC, and it is said how to choose another", async () => {
  const name = `utc-${randomBytes(3).toString("hex")}`;
  onTestFinished(() => inThisProcess((services) => deleteSchedule(services, name)).catch(() => undefined));
  const environment = { TZ: "America/Lima" };
  const words = ["schedule", "create", name, "--cron", "0 6 1 1 *", "--max-cost", "2.5", "--", "say: Never."];
  const { code, err } = await longhaul(words, { environment });
  expect(code, err).toBe(0);
  expect(err).toContain("Its times are in the zone UTC.");
  expect(err).toContain("--time-zone America/Lima");
  expect(err).toContain("Each of its sessions may cost at most $2.50;");
  expect(await listed(name)).toMatchObject({
    timeZone: "UTC",
    limits: { maxCostUsd: 2.5, maxSteps: 500 },
  });
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

const YEARLY = "0 6 1 1 *";

/** A connection whose schedules are made, and whose answer to that is lost. */
function losingAnswers(services: Services): Services {
  const client = async () => {
    const real = await services.temporal.client();
    const schedule = Object.create(real.schedule) as typeof real.schedule;
    schedule.create = (async (options: Parameters<typeof real.schedule.create>[0]) => {
      await real.schedule.create(options);
      throw Object.assign(new Error("14 UNAVAILABLE: connection lost"), { code: 14 });
    }) as typeof real.schedule.create;
    return Object.create(real, { schedule: { value: schedule } }) as typeof real;
  };
  return { ...services, temporal: { ...services.temporal, client } };
}

const orderOf = (name: string, cron = YEARLY) => ({
  name,
  cron,
  timeZone: undefined,
  overlap: "skip" as const,
  task: "say: Never.",
  config: directConfig({}) as never,
});

test("a schedule that was made although the answer was lost is ours", async () => {
  const name = `lost-${randomBytes(3).toString("hex")}`;
  onTestFinished(() => inThisProcess((services) => deleteSchedule(services, name)).catch(() => undefined));
  const next = await inThisProcess((services) => makeSchedule(losingAnswers(services), orderOf(name)));
  expect(next).toHaveLength(3);
  expect(await listed(name)).toMatchObject({ state: "active", task: "say: Never." });
});

test("a schedule whose row is gone is listed, adopted by the same order, and deleted", async () => {
  const name = `unrecorded-${randomBytes(3).toString("hex")}`;
  onTestFinished(() => inThisProcess((services) => deleteSchedule(services, name)).catch(() => undefined));
  await inThisProcess(async (services) => {
    await makeSchedule(services, orderOf(name));
    await removeSchedule(services.store.db, name);
  });
  await eventually("it is listed", async () => (await listed(name))?.state === "unrecorded");
  // Another order may not take its place.
  await expect(
    inThisProcess((services) => makeSchedule(services, orderOf(name, "0 7 1 1 *"))),
  ).rejects.toMatchObject({ exitCode: 5 });
  await inThisProcess((services) => makeSchedule(services, orderOf(name)));
  expect(await listed(name)).toMatchObject({ state: "active" });
  await inThisProcess((services) => removeSchedule(services.store.db, name));
  expect((await schedule("delete", name)).code).toBe(0);
  await eventually("it is gone", async () => (await listed(name)) === undefined);
});

test("a row that an attempt left does not keep the name", async () => {
  const name = `left-${randomBytes(3).toString("hex")}`;
  onTestFinished(() => inThisProcess((services) => deleteSchedule(services, name)).catch(() => undefined));
  await inThisProcess(async (services) => {
    const { task, config } = orderOf(name);
    await createSchedule(services.store.db, { name, task, config, owner: undefined });
    await makeSchedule(services, orderOf(name));
  });
  expect(await listed(name)).toMatchObject({ state: "active" });
});

test.each([
  ["0 0 12 * * *", /"0 0 12 \* \* \*" has 6 fields/],
  ["0 12 * * * 2027", /has 6 fields/],
  ["0 0 12 * * * 2027", /has 7 fields/],
  ["0 0 31 2 *", /The times "0 0 31 2 \*" never come/],
])("times of another program (%s) are refused, and leave nothing", async (cron, words) => {
  const name = `odd-${randomBytes(3).toString("hex")}`;
  const { code, err } = await schedule("create", name, "--cron", cron, "--", "say: Never.");
  expect({ code, err }).toMatchObject({ code: 2, err: expect.stringMatching(words) });
  expect(await listed(name)).toBeUndefined();
});
