import { expect, it } from "vitest";
import { endedNote, runningNote } from "../../activities/workspace/background-commands.ts";

const command = (index: number) => ({ id: `s${index}c0`, about: "npm test" });
const LINES = "x".repeat(500);

it("names every one of thirty ended commands and quotes the first few, in a bounded note", () => {
  const note = endedNote(
    Array.from({ length: 30 }, (_, index) => ({
      ...command(index),
      end: { how: "exited", exitCode: 1, ms: 240_000, lines: LINES },
    })),
  );
  expect(note.match(/s\d+c0 \(npm test\) ended with exit code 1 after 4 min\./g)).toHaveLength(30);
  expect(note.match(/Last lines:/g)).toHaveLength(8);
  expect(note.length).toBeLessThan(7_000);
});

it("says how many it does not name", () => {
  const many = Array.from({ length: 45 }, (_, index) => command(index));
  const note = endedNote(many.map((one) => ({ ...one, end: { how: "gone" } })));
  expect(note).toContain("s39c0");
  expect(note).toMatch(/\nand 5 more\]$/);
  expect(runningNote(many)).toContain("and 5 more still run and end with this session");
});

it("says how each command ended", () => {
  const note = endedNote([
    { ...command(1), end: { how: "was ended by SIGKILL (disk)", ms: 3_000 } },
    { id: "s2c0", about: "", end: { how: "gone" } },
  ]);
  expect(note).toBe(
    "[Commands in the background:\ns1c0 (npm test) was ended by SIGKILL (disk) after 3 s.\ns2c0 is gone with its sandbox, and how far it came is not known.]",
  );
});
