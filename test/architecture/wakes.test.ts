/** Who appends to a session's log need not remember its watchers: the log wakes them, and nothing else does. */
import { expect, test } from "vitest";
import { sources } from "./sources.ts";

const LOG = "activities/store/events.ts";
/** What belongs to the log alone, and the files that may have it. */
const OWN: readonly (readonly [what: string, pattern: RegExp, files: readonly string[]])[] = [
  ["rows of the log", /\b(insertFrom|insert|copyRows)\(\s*(\w+\.)?(events|streamChunks)\b/g, [LOG]],
  ["a wake", /\.(wake|appended)\b/g, [LOG, "activities/store/db.ts"]],
  ["NOTIFY", /\bpg_notify\b/g, ["activities/store/announcements.ts"]],
];

const found = (text: string, pattern: RegExp) => text.match(pattern) ?? [];
const product = () => sources(/^(activities|client|temporal|worker|workflows|examples)\/.*\.ts$/);

test("only the log stores events, and only it wakes watchers", () => {
  const elsewhere = product().flatMap(({ path, text }) =>
    OWN.filter(([, , files]) => !files.includes(path)).flatMap(([what, pattern]) =>
      found(text, pattern).map((use) => `${path}: ${what}: ${use}`),
    ),
  );
  expect(elsewhere, "appendEvents wakes once what it wrote is committed.").toEqual([]);
});

test("a statement that inserts into the log as a part is one that wakes", () => {
  const parts = product().filter(({ path, text }) => path !== LOG && text.includes("insertLog("));
  expect(parts.map(({ path }) => path)).toEqual(["activities/store/commit-step.ts"]);
  expect(parts.flatMap(({ text }) => found(text, /\b(named|composed|db\.execute)\(/g))).toEqual([]);
});

test.each([
  "deps.notifier.wake(session.id)",
  "db.insert(events).values(rows)",
  "insertFrom(\n    streamChunks, {})",
  "copyRows(schema.events, {})",
  'pool.query("select pg_notify($1, $2)")',
])("%s is found", (text) => {
  expect(OWN.some(([, pattern]) => found(text, pattern).length > 0)).toBe(true);
});
