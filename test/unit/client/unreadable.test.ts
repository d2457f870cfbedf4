import { expect, test } from "vitest";
import { readFileSync } from "node:fs";
import { unreadable, unwritable } from "../../../client/console/errors.ts";

const errorOf = (path: string): unknown => {
  try {
    return readFileSync(path);
  } catch (error) {
    return error;
  }
};

test("a file that cannot be read is said in words, a rare cause with its code", () => {
  expect(unreadable("tasks.jsonl", errorOf("/nowhere/tasks.jsonl")).message).toBe(
    "tasks.jsonl does not exist.",
  );
  expect(unreadable("--image: a.png", errorOf("/")).message).toBe(
    "--image: a.png is a folder, and a file is needed.",
  );
  const rare = Object.assign(new Error("too many"), { code: "EMFILE" });
  expect(unreadable("a", rare)).toMatchObject({ message: "a cannot be read (EMFILE).", exitCode: 2 });
});

test("a file that cannot be written is said in words, with what to do", () => {
  const full = Object.assign(new Error("write"), { code: "ENOSPC", syscall: "write" });
  expect(unwritable("/a/b", full, "Name another file.")).toMatchObject({
    message: "/a/b cannot be written: no space is left on its file system.",
    fix: "Name another file.",
    exitCode: 5,
  });
});
