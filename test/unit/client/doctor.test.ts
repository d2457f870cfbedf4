import { expect, it } from "vitest";
import { doctorText } from "../../../client/commands/doctor.ts";

it("doctor marks differently what works, what is missing, and what was not measured", () => {
  const text = doctorText(
    {
      checks: [
        { name: "good", ok: true, found: "there" },
        { name: "open", ok: false, found: "a wall is missing", fix: "build it" },
        { name: "unknown", ok: true, warning: true, found: "not measured" },
      ],
      settings: [],
    },
    (_, plain) => plain,
  );
  expect(text.split("\n").slice(0, 4)).toEqual([
    "✓ good     there",
    "✗ open     a wall is missing",
    "           → build it",
    "! unknown  not measured",
  ]);
});
