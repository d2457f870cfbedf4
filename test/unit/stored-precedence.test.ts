import { expect, it } from "vitest";
import { toPrecedence } from "../../activities/config/precedence.ts";

it("leaves out what Temporal refuses, so that no workflow fails its task for a stored item", () => {
  expect(toPrecedence({ priority: -1, tenant: "a".repeat(65) })).toBeUndefined();
  expect(toPrecedence({ priority: 1.5, tenant: "a b" })).toBeUndefined();
  expect(toPrecedence({ priority: 99, tenant: "a" })).toEqual({ fairnessKey: "a" });
  expect(toPrecedence({ priority: 5 })).toEqual({ priorityKey: 5 });
});
