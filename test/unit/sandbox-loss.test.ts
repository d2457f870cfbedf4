import { describe, expect, it } from "vitest";
import {
  toSandboxLoss,
  unsavedAtReset,
  type SandboxChange,
} from "../../activities/workspace/sandbox-loss.ts";

const now = { host: "alpha", volume: "v1", container: "c1", boot: "b1" };
const before = { ...now, savedStep: 4, leftOut: [] };
const change = (more: Partial<SandboxChange> = {}): SandboxChange => ({
  before,
  now,
  step: 6,
  lastChangingStep: 4,
  hasCheckpoint: true,
  unsavedFolders: ["node_modules"],
  ...more,
});
const noticeOf = (more: Partial<SandboxChange>): string => {
  const loss = toSandboxLoss(change(more));
  return "notice" in loss ? loss.notice : loss.kind;
};

describe("the loss with a sandbox", () => {
  it("is nothing if it is the same one", () => {
    expect(toSandboxLoss(change())).toEqual({ kind: "none" });
    expect(toSandboxLoss(change({ now: { ...now, host: "renamed" } }))).toEqual({ kind: "none" });
  });

  it("is its processes after a restart, and all outside the workspace in another container", () => {
    expect(noticeOf({ now: { ...now, boot: "b2" } })).toMatch(/restarted.*as they were.*processes are gone/);
    expect(noticeOf({ now: { ...now, boot: "b2" } })).not.toContain("outside /workspace");
    expect(noticeOf({ now: { ...now, container: "c2", boot: "b2" } })).toContain("outside /workspace");
  });

  it(
    "is the changes after the last save, and what is never saved, on another volume",
    { tags: ["R14"] },
    () => {
      const other = { ...now, volume: "v2" };
      expect(noticeOf({ now: other })).toContain("as saved after step 4.");
      expect(noticeOf({ now: other })).not.toContain("What steps");
      expect(noticeOf({ now: other, lastChangingStep: 5 })).toContain("What steps 5 to 5 changed");
      expect(noticeOf({ now: other, lastChangingStep: 6, before: { ...before, savedStep: 5 } })).toMatch(
        /step 5\. What the calls of step 6 had done/,
      );
      expect(noticeOf({ now: { ...other, host: "beta" } })).toContain(
        "its Docker host alpha does not answer",
      );
      const leftOut = Array.from({ length: 12 }, (_, at) => ({ path: `f${at}`, bytes: 70 * 2 ** 20 }));
      expect(noticeOf({ now: other, before: { ...before, leftOut } })).toMatch(/"f9" \(70 MiB\) and 2 more/);
    },
  );

  it(
    "is everything if steps wrote files and none was saved, but not if nothing was to save",
    { tags: ["R14"] },
    () => {
      const lost = { now: { ...now, volume: "v2" }, hasCheckpoint: false };
      const never = { ...before, savedStep: 0 };
      expect(toSandboxLoss(change({ ...lost, before: never }))).toMatchObject({ kind: "everything" });
      expect(toSandboxLoss(change({ ...lost, before: never, lastChangingStep: undefined }))).toMatchObject({
        kind: "files",
      });
      expect(toSandboxLoss(change({ ...lost }))).toMatchObject({ kind: "files" });
      expect(toSandboxLoss(change({ ...lost, before: never, step: 1, lastChangingStep: 1 }))).toMatchObject({
        kind: "files",
      });
    },
  );
});

it("after a reset before the newest files were saved, lists the missing files", () => {
  const lossAt = (savedStep: number | null, step: number, lastChangingStep: number) =>
    unsavedAtReset({ before: { savedStep }, step, lastChangingStep });
  expect(lossAt(4, 6, 5)).toMatch(/as saved after step 4.*What steps 5 to 5 changed is not there/);
  expect(lossAt(null, 3, 2)).toContain("What steps 1 to 2 changed");
  // Everything is saved, or nothing was changed since.
  expect(lossAt(5, 6, 5)).toBeUndefined();
  expect(lossAt(9, 6, 5)).toBeUndefined();
  expect(lossAt(4, 6, 4)).toBeUndefined();
});
