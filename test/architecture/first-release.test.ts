import { expect, test } from "vitest";
import { sources } from "./sources.ts";

/** Words of what only a build before the first release wrote, had or lacked. */
const OF_BEFORE =
  /\b(?:earlier|older|old) (?:versions?|builds?|histor(?:y|ies)|rows?)\b|\bsessions? (?:older than|from before)\b|\bolder than (?:such|these|this setting|stored)\b|\bbefore 0\.1\.0\b/i;

/** By path: how an old clone is recognised and refused, what later releases do, and versions of other programs. */
const MEANT: Readonly<Record<string, RegExp>> = {
  "activities/sandbox/docker/known-escapes.ts": /have the fix at an older version/,
  "activities/store/migrations/0000_initial.sql": /an earlier build's is refused/,
  "activities/workspace/kept-set-up.ts": /what older versions kept unusable/,
  "temporal/postgres-probe.ts": /tables of an earlier build|tables of a build before 0\.1\.0/,
};

test("nothing serves only what builds before the first release made", () => {
  const found = sources(
    /^(?:activities|client|examples|scripts|temporal|worker|workflows)\/.*\.(?:ts|mjs|py|sql)$/,
  ).flatMap(({ path, text }) =>
    text
      .split("\n")
      .filter((line) => OF_BEFORE.test(line) && !MEANT[path]?.test(line))
      .map((line) => `${path}: ${line.trim()}`),
  );
  expect(found, "Remove it with what it explains; a later release says which release it means.").toEqual([]);
});

test.each([
  "/** Absent in events of earlier versions. */",
  "// Sessions older than questions use the defaults.",
  "# A proxy that an earlier version started has one socket for all.",
])("words such as %s are found", (line) => {
  expect(line).toMatch(OF_BEFORE);
});
