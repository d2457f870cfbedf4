import { expect, it } from "vitest";
import type { CommandState } from "../../../activities/sandbox/sandbox.ts";
import { diskNote } from "../../../activities/tools/bash-result.ts";

const base = { id: "c", startedAtMs: 0, outBytes: 0, errBytes: 0, outKept: 0, errKept: 0, durationMs: 1 };
const exited = (exitCode: number, disk?: CommandState["disk"]): CommandState => ({
  ...base,
  kind: "exited",
  exitCode,
  disk,
});
const OVER = { usedBytes: 11e9, limitBytes: 10e9, freeBytes: 50e9 };
const HOST = { usedBytes: 1e9, limitBytes: 10e9, freeBytes: 4e8 };

it("names the disk limit that was reached and the remedy, and nothing for another cause", () => {
  const ended: CommandState = { ...base, kind: "killed", by: "disk", signal: "SIGKILL", disk: OVER };
  expect(diskNote(ended)).toMatch(/^\[ended, with everything that ran .*10 GB of its disk limit .*rm /);
  expect(diskNote({ ...ended, disk: { ...OVER, unseenBytes: 9e9 } })).toContain(
    "9.0 GB of them where they cannot",
  );
  expect(diskNote(exited(1, HOST))).toMatch(
    /^\[no file could grow .*host's disk is nearly full, 400 MB left/,
  );
  expect(diskNote(exited(153))).toContain("sandbox.disk");
  expect(diskNote({ ...base, kind: "killed", by: "signal", signal: "SIGXFSZ" })).toContain("sandbox.disk");
  expect(diskNote(exited(0))).toBeUndefined();
  expect(diskNote({ ...base, kind: "killed", by: "timeout", signal: "SIGTERM" })).toBeUndefined();
});
