import { expect, it } from "vitest";
import { createAsking, mayMove, type OpenQuestion } from "../../../workflows/asking.ts";

const question = (kind: OpenQuestion["kind"], settlement?: OpenQuestion["settlement"]): OpenQuestion => ({
  id: `s1${kind}`,
  kind,
  text: "?",
  askedAtMs: 0,
  settlement,
});
const asking = (...open: OpenQuestion[]) => ({ ...createAsking(), open });

it("a waiting run carries a call's questions to another version of the workers", () => {
  expect(mayMove(asking(question("ask"), question("approval"), question("plan"), question("egress")))).toBe(
    true,
  );
});

it.each(["mcp", "budget"] as const)(
  "a question of kind %s is answered on the version that asked it",
  (kind) => {
    expect(mayMove(asking(question("ask"), question(kind)))).toBe(false);
    expect(mayMove(asking(question(kind, { how: "withdrawn", why: "said" })))).toBe(true);
  },
);
