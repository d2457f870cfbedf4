import { expect, it } from "vitest";
import { followSchema } from "../../../activities/config/follow-settings.ts";
import { gitConfigSchema } from "../../../activities/config/git-settings.ts";
import type { FollowState } from "../../../activities/contract/follow.ts";
import {
  followExitCode,
  followLines,
  followMark,
  type FollowStatus,
} from "../../../client/view/followed-words.ts";
import { sessionGit } from "../../../client/sessions/run-flags.ts";

const now = new Date("2026-11-27T10:00:00Z");
const followed: FollowStatus = {
  url: "https://github.com/acme/app/pull/7",
  state: "following",
  reason: "checks run: build",
  head: "9f31c02aa0b1c2d3e4f5",
  base: "main",
  checks: [
    { name: "lint", state: "good" },
    { name: "build", state: "running" },
  ],
  openThreads: 1,
  conflicts: [],
  rounds: 1,
  roundsUpTo: 5,
  costUsd: 0.25,
  maxCostUsd: 10,
  until: "2026-12-11T10:00:00.000Z",
  lookedAt: "2026-11-27T09:59:00.000Z",
  nextLookAt: "2026-11-27T10:04:00.000Z",
  endedAt: null,
  mergeCommit: null,
};

it("says how a followed pull request stands", () => {
  expect(followLines("brave-delta-rz5k", followed, now)).toEqual([
    "followed: checks run: build",
    "round 1 of 5, $0.2500, next look in 4 min",
    "head 9f31c02aa0b1; 1 of 2 checks good (build running); 1 open thread",
  ]);
});

it("says why it is paused, and how to go on", () => {
  const paused = { ...followed, state: "paused" as const, reason: "its 5 rounds are used" };
  expect(followLines("brave-delta-rz5k", paused, now)).toEqual([
    "paused: its 5 rounds are used",
    "round 1 of 5, $0.2500, next look in 4 min",
    "head 9f31c02aa0b1; 1 of 2 checks good (build running); 1 open thread",
    "go on: longhaul follow brave-delta-rz5k",
  ]);
});

it("says how it has ended", () => {
  const merged = { ...followed, state: "merged" as const, reason: null, endedAt: now.toISOString() };
  expect(followLines("brave-delta-rz5k", merged, now)).toEqual(["merged", "1 round, $0.2500"]);
});

it.each<[FollowState, number, string]>([
  ["following", 7, ", PR followed"],
  ["merged", 0, ", PR merged"],
  ["closed", 1, ", PR closed"],
  ["lost", 1, ", PR lost"],
  ["paused", 3, ", PR paused"],
  ["stopped", 6, ", PR open"],
])("has an exit code and a mark for %s", (state, code, mark) => {
  expect(followExitCode({ state })).toBe(code);
  expect(followMark(state)).toBe(mark);
});

const repo = "https://github.com/acme/app.git";
const plain = gitConfigSchema.parse({});

it("opens a pull request to follow, unless it is said how", () => {
  expect(sessionGit({ repo, follow: true }, plain)).toMatchObject({
    push: "end",
    pr: "ready",
    follow: followSchema.parse({ on: true }),
  });
  expect(sessionGit({ repo, follow: true, pr: "draft" }, plain)).toMatchObject({ pr: "draft" });
  const configured = gitConfigSchema.parse({ pr: "draft", follow: { on: true, rounds: 2 } });
  expect(sessionGit({ repo }, configured)).toMatchObject({ pr: "draft", follow: { on: true, rounds: 2 } });
});

it("follows nothing unasked", () => {
  expect(sessionGit({ repo, pr: "ready" }, plain)?.follow).toBeUndefined();
  expect(sessionGit({ repo }, gitConfigSchema.parse({ follow: { rounds: 2 } }))).toMatchObject({
    pr: "none",
    follow: { on: false, rounds: 2 },
  });
});

it("refuses to follow what is not opened, or is on no repository", () => {
  expect(() => sessionGit({ repo, follow: true, pr: "none" }, plain)).toThrow(
    "--follow needs a pull request, and --pr none opens none.",
  );
  expect(() => sessionGit({ follow: true }, plain)).toThrow(
    "--follow needs a repository, and none is named.",
  );
});

it.each([
  ["90s", 90_000],
  ["2m", 120_000],
  ["24h", 86_400_000],
  [5_000, 5_000],
  [0, 0],
])("a settle of %s is a time", (settle, ms) => {
  expect(followSchema.parse({ settle }).settle).toBe(ms);
});

it.each(["90", "1.5m", "25h", "2d", "-1s", 86_400_001, 1.5])("a settle of %s is refused", (settle) => {
  expect(followSchema.safeParse({ settle }).success).toBe(false);
});
