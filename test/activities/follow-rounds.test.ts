/** What a follower's looks come to, on strict fakes of GitHub and GitLab: what is told, once, and what is not. */
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { createFollowActivities } from "../../activities/follow/follow-pull-request.ts";
import { whyNoPush } from "../../activities/follow/followed.ts";
import type { ActivityScope } from "../../activities/runtime/activity-scope.ts";
import { saveReply, updateFollow } from "../../activities/store/follows.ts";
import { guidance, toolCalls } from "../../activities/store/schema/index.ts";
import { followStand, type FollowStand } from "../support/forge/follow-stand.ts";
import { PEOPLE } from "../support/forge/kept-pull.ts";
import { ok, refused } from "../support/forge/routes.ts";
import { attemptOf } from "../support/lone-deps.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const HOUR_MS = 3_600_000;
const KINDS = ["github", "gitlab"] as const;

const fail = ({ forge }: FollowStand, log = "FAIL one.test: boom", commit = forge.head()) =>
  forge.report(commit, { name: "ci / test", result: "failed", log });

/** As the session's call of `reply_review` keeps it. */
async function wantsReply({ id, forge }: FollowStand, superseded?: number) {
  const at = { sessionId: id, epoch: 1, step: 2 };
  const target = forge.threads[0]?.id ?? "";
  await saveReply(database.store.db, {
    ...at,
    callIndex: 0,
    round: 1,
    kind: "thread",
    target,
    outcome: "fixed",
    text: "It is done.",
  });
  await database.store.db.insert(toolCalls).values({
    ...at,
    index: 0,
    callId: "c1",
    name: "reply_review",
    sequence: 2_000,
    status: "completed",
    supersededEpoch: superseded ?? null,
  });
}

const reviewed = ({ forge }: FollowStand) =>
  forge.review(PEOPLE.dev, "changes", [{ path: "one", line: 1, text: "Why one?" }]);

describe.each(KINDS)("on %s, a failed check", (kind) => {
  it("is one round and one message, however many look at the same time (F1)", async () => {
    const stand = await followStand(database, { kind });
    fail(stand);
    await Promise.all([stand.look(), stand.look(), stand.look()]);
    await stand.look();
    expect(await stand.rounds()).toMatchObject([{ number: 1 }]);
    const rows = await database.store.db.select().from(guidance).where(eq(guidance.sessionId, stand.id));
    expect(rows.map(({ id }) => id)).toEqual(["follow@1"]);
  });

  it("of an older commit is nothing, also if it comes late (F6)", async () => {
    const stand = await followStand(database, { kind });
    const older = stand.forge.head();
    fail(stand);
    await stand.look();
    await stand.begins();
    await stand.ends("completed", { path: "one", text: "2\n" });
    stand.forge.report(stand.forge.head(), { name: "ci / test", result: "good" });
    fail(stand, "FAIL again: late", older);
    expect(await stand.look()).toMatchObject({ kind: "wait", line: "its checks are green" });
    expect(await stand.rounds()).toHaveLength(1);
  });
});

describe("a log", () => {
  it("of 80 MB is told within bounds, and its end is what fails (F10)", async () => {
    const stand = await followStand(database);
    const noise = `${"all is well ".repeat(80)}\n`.repeat(80_000);
    fail(stand, `${noise}FAIL one.test: boom at the end\n`);
    expect(await stand.look()).toMatchObject({ kind: "round" });
    const told = await stand.told(1);
    expect(told.length).toBeLessThan(20_000);
    expect(told).toContain("boom at the end");
  });

  it("is told as what the failing step ran and says, by the forge's steps (F11)", async () => {
    const stand = await followStand(database);
    const at = (second: number) => `2026-11-27T08:00:${String(second).padStart(2, "0")}Z`;
    const step = (name: string, result: "good" | "failed", from: number, to: number) => ({
      name,
      result,
      from: at(from),
      to: at(to),
    });
    const lines = [
      ...Array.from({ length: 5_000 }, (_, index) => [1, `error: environment ${index}`] as const),
      [20, "##[group]Run npm test"] as const,
      [20, "##[endgroup]"] as const,
      [21, "it does not add up"] as const,
      [30, "error: nothing to clean up"] as const,
    ];
    stand.forge.report(stand.forge.head(), {
      name: "ci / test",
      result: "failed",
      log: lines.map(([second, text]) => `${at(second)} ${text}`).join("\n"),
      steps: [step("Set up", "good", 1, 10), step("Test", "failed", 20, 22), step("Post", "good", 30, 31)],
    });
    await stand.look();
    const told = await stand.told(1);
    expect(told).toContain("Run npm test");
    expect(told).toContain("it does not add up");
    expect(told).not.toMatch(/environment \d|nothing to clean up/);
  });

  it("that is gone is said, and what else is known is told (F10)", async () => {
    const stand = await followStand(database);
    const note = { path: "one", start_line: 3, annotation_level: "failure", message: "one is wrong" };
    stand.forge.instead = ({ path }) => {
      if (path.endsWith("/annotations")) return ok([note]);
      if (!/\/check-runs\/\d+$/.test(path)) return undefined;
      const output = { title: null, summary: null, text: null, annotations_count: 1 };
      const page = "https://github.example/acme/app/actions/runs/1/job/7";
      return ok({ id: 7, html_url: page, details_url: page, app: { slug: "github-actions" }, output });
    };
    fail(stand, "");
    await stand.look();
    expect(await stand.told(1)).toContain("one:3: one is wrong");
    const bare = await followStand(database);
    fail(bare, "");
    await bare.look();
    expect(await bare.told(1)).toContain("The forge gives no log for ci / test");
  });

  it("is asked for again where its link is over, and never with the token elsewhere (F10)", async () => {
    const stand = await followStand(database);
    stand.forge.deadLinks = 1;
    fail(stand);
    await stand.look();
    expect(await stand.told(1)).toContain("FAIL one.test: boom");
    expect(stand.forge.calls.filter((one) => one.endsWith("/logs"))).toHaveLength(2);
  });
});

describe("a session's run that", () => {
  it.each(["failed", "cancelled", "max_steps"])(
    "ends as %s in a round answers nobody, is told once, and is not repeated (F20)",
    async (outcome) => {
      const stand = await followStand(database);
      reviewed(stand);
      await stand.look();
      await stand.begins();
      await wantsReply(stand);
      await stand.ends(outcome, { path: "one", text: "2\n" });
      fail(stand);
      for (let look = 0; look < 3; look += 1)
        expect(await stand.look()).toMatchObject({ kind: "wait", isPaused: true });
      expect(await stand.rounds()).toMatchObject([{ outcome }]);
      expect(stand.said()).toEqual([
        expect.stringContaining(`the session's run in the last round ended as ${outcome}`),
      ]);
      expect(stand.forge.threads[0]?.comments).toHaveLength(1);
    },
  );

  it("a person has begun comes first, and the round has the facts that are after it (F21)", async () => {
    const stand = await followStand(database);
    fail(stand);
    await stand.begins();
    expect(await stand.look()).toMatchObject({ kind: "wait", line: "the session works" });
    await stand.ends("completed", { path: "one", text: "2\n" });
    fail(stand, "FAIL two.test: another");
    expect(await stand.look()).toMatchObject({ kind: "round", round: 1 });
    expect(await stand.rounds()).toMatchObject([{ head: stand.forge.head() }]);
    expect(await stand.told(1)).toContain("two.test: another");
  });

  it("works while it is merged pushes and answers nothing more (F22)", async () => {
    const stand = await followStand(database);
    reviewed(stand);
    await stand.look();
    await stand.begins();
    await wantsReply(stand);
    stand.forge.squash();
    const scope = { sessionId: stand.id, signal: AbortSignal.timeout(30_000) } as ActivityScope;
    expect(await whyNoPush(stand.deps, stand.id, scope, undefined)).toBe("its pull request is merged");
    expect(await stand.look()).toMatchObject({ kind: "over", end: "merged" });
    const activities = createFollowActivities(stand.deps);
    for (let close = 0; close < 2; close += 1)
      await attemptOf(`follow:${stand.id}`, "f1").run(() => activities.closeFollow({ end: "merged" }));
    expect(await stand.look()).toMatchObject({ kind: "over" });
    expect(stand.forge.threads[0]?.comments).toHaveLength(1);
    expect(stand.said()).toHaveLength(1);
  });
});

it("what calls want that a reset has left is not written, and rounds are counted on (F36)", async () => {
  const stand = await followStand(database);
  reviewed(stand);
  await stand.look();
  await stand.begins();
  await wantsReply(stand, 2);
  await stand.ends("completed", { path: "one", text: "2\n" });
  await stand.look();
  expect(stand.forge.threads[0]?.comments).toHaveLength(1);
  fail(stand);
  expect(await stand.look()).toMatchObject({ kind: "round", round: 2 });
});

it.each(KINDS)("on %s, a review is told once, though the head moves on (invariant 2)", async (kind) => {
  const stand = await followStand(database, { kind });
  reviewed(stand);
  // It is of an older commit by the time that it is told.
  await stand.begins();
  await stand.ends("completed", { path: "one", text: "2\n" });
  await stand.look();
  await stand.begins();
  await stand.ends("completed", { path: "one", text: "3\n" });
  expect(await stand.look()).toMatchObject({ kind: "wait" });
  expect(await stand.rounds()).toHaveLength(1);
});

describe("a forge", () => {
  it.each(KINDS)("that wants to be left alone (%s) is, for so long (F27)", async (kind) => {
    const stand = await followStand(database, { kind });
    fail(stand);
    stand.forge.instead = () => ({
      ...refused(kind === "github" ? 403 : 429, "slow down"),
      headers: { "retry-after": "600" },
    });
    const calls = stand.forge.calls.length;
    const look = await stand.look();
    expect(look).toMatchObject({ kind: "wait" });
    expect(look.kind === "wait" && look.lookMs).toBeGreaterThanOrEqual(600_000);
    expect(stand.forge.calls).toHaveLength(calls + 1);
    stand.forge.instead = undefined;
    // Whoever looks before that asks nothing.
    expect(await stand.look()).toMatchObject({ kind: "wait" });
    expect(stand.forge.calls).toHaveLength(calls + 1);
  });

  it("that is away for days loses nothing, and the days count on (F28)", async () => {
    const stand = await followStand(database, { follow: { days: 3 } });
    const until = (await stand.row())?.until;
    fail(stand);
    stand.forge.instead = () => refused(502, "away");
    for (let look = 0; look < 3; look += 1)
      expect(await stand.look()).toMatchObject({ kind: "wait", lookMs: HOUR_MS / 4 });
    expect(await stand.row()).toMatchObject({ state: "following", until, lostAt: null });
    stand.forge.instead = undefined;
    expect(await stand.look()).toMatchObject({ kind: "round" });
  });

  it("is told once when the days are over, also if nothing is wrong (2.10)", async () => {
    const stand = await followStand(database);
    await updateFollow(database.store.db, stand.id, { until: new Date(Date.now() - 1_000) });
    for (let look = 0; look < 2; look += 1)
      expect(await stand.look()).toMatchObject({ kind: "wait", isPaused: true, line: "its days are over" });
    expect(stand.said()).toEqual([expect.stringContaining("its days are over")]);
    stand.forge.squash();
    expect(await stand.look()).toMatchObject({ kind: "over", end: "merged" });
  });

  it.each([401, 403, 404])(
    "that answers %s for a day has lost it; for less, it is followed on (F29)",
    async (status) => {
      const stand = await followStand(database);
      stand.forge.instead = () => refused(status, "no");
      expect(await stand.look()).toMatchObject({ kind: "wait", lookMs: HOUR_MS });
      stand.forge.instead = undefined;
      await stand.look();
      expect(await stand.row()).toMatchObject({ lostAt: null });
      stand.forge.instead = () => refused(status, "no");
      await stand.look();
      await updateFollow(database.store.db, stand.id, { lostAt: new Date(Date.now() - 25 * HOUR_MS) });
      const calls = stand.forge.calls.length;
      expect(await stand.look()).toMatchObject({ kind: "over", end: "lost" });
      expect(stand.forge.calls).toHaveLength(calls + 1);
    },
  );

  it.each(KINDS)(
    "that has renamed the repository (%s) is asked for it by its new name (F29)",
    async (kind) => {
      const stand = await followStand(database, { kind });
      fail(stand);
      stand.forge.renamed = "new/name";
      expect(await stand.look()).toMatchObject({ kind: "round" });
      expect(await stand.row()).toMatchObject({ project: "new/name" });
    },
  );
});

it("a pull request of a fork's branch, to which the session cannot push, is not followed (F33)", async () => {
  const stand = await followStand(database);
  const scope = attemptOf(`follow:${stand.id}`, "f1");
  const activities = createFollowActivities(stand.deps);
  await scope.run(() => activities.closeFollow({ end: "stopped" }));
  stand.forge.fork = "eve/app";
  await expect(stand.open()).rejects.toThrow("is not of the branch");
  expect(await stand.look()).toMatchObject({ kind: "over" });
});
