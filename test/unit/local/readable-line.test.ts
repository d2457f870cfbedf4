import { expect, test } from "vitest";
import { readableLine } from "../../../client/setup/worker-process.ts";

const line = (entry: object) =>
  JSON.stringify({ time: "2026-11-22T10:02:07.120Z", pid: 1, name: "worker", ...entry });
const clock = new Date("2026-11-22T10:02:07.120Z").toTimeString().slice(0, 8);

test("a line shows the time, the message and its own fields", () => {
  expect(readableLine(line({ level: 30, msg: "worker polls", queue: "longhaul" }))).toBe(
    `${clock}  worker polls  queue longhaul`,
  );
});

test("a warning and an error are marked, an error by its message", () => {
  expect(readableLine(line({ level: 40, msg: "again" }))).toBe(`${clock}  warning: again`);
  expect(readableLine(line({ level: 50, msg: "failed", err: { message: "no room", stack: "at x" } }))).toBe(
    `${clock}  error: failed  err no room`,
  );
});

test("text that is not JSON is unchanged", () => {
  for (const other of ["plain words", "17", "null", "{broken"]) expect(readableLine(other)).toBe(other);
});
