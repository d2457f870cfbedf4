/** Whole sessions on each server that people use; ends with the table: server × case. */
import { afterAll, describe, it } from "vitest";
import { playDialect } from "../support/dialects/play-dialect.ts";
import { CASES, type Outcome } from "../support/dialects/session-script.ts";
import { DIALECTS, type DialectName } from "../support/model-server/dialects/dialects.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const table = new Map<DialectName, Outcome>();
const names = Object.keys(DIALECTS) as DialectName[];
describe("a session of twenty steps", () => {
  // Much of it is waiting, for what a server asks for and for deadlines.
  it.concurrent.for(names)("goes well on %s", async (name, { expect }) => {
    const outcome = await playDialect(database, name);
    table.set(name, outcome);
    for (const caseName of CASES) expect.soft(outcome[caseName], caseName).toMatch(/^[✓–]$/);
  });
});

afterAll(() => {
  const width = 18;
  const head = `${"server".padEnd(width)} ${CASES.join(" ")}`;
  const lines = [...table].map(([name, outcome]) => {
    const marks = CASES.map((caseName) => markOf(outcome[caseName]).padEnd(caseName.length));
    const failed = CASES.filter(
      (caseName) => outcome[caseName].length > 1 && outcome[caseName] !== "not reached",
    );
    const why = failed.map((caseName) => `${caseName}: ${outcome[caseName]}`).join("; ");
    return `${name.padEnd(width)} ${marks.join(" ")} ${why}`.trimEnd();
  });
  process.stdout.write(`\n${[head, ...lines].join("\n")}\n`);
});

function markOf(outcome: string): string {
  if (outcome === "not reached") return "·";
  return outcome.length === 1 ? outcome : "✗";
}
