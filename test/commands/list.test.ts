import { expect, test } from "vitest";
import { finished, longhaul } from "../support/commands/longhaul.ts";

test("lists sessions with their status, newest first, as a table and as JSON", async () => {
  const first = await finished("say: One.");
  const second = await finished("say: Two.");
  const { code, out } = await longhaul(["list"]);
  expect(code).toBe(0);
  expect(out.indexOf(second)).toBeGreaterThanOrEqual(0);
  expect(out.indexOf(second)).toBeLessThan(out.indexOf(first));
  const rows = JSON.parse((await longhaul(["list", "--json"])).out) as { id: string; status: string }[];
  expect(rows.find(({ id }) => id === first)?.status).toBe("completed");
});
