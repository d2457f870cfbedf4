import { expect, test } from "vitest";
import { finished, longhaul } from "../support/commands/longhaul.ts";

test("shows the use of the window, as a display and as one JSON document", async () => {
  const id = await finished("run: seq 2000\nsay: Done.");
  const shown = await longhaul(["context", id]);
  expect(shown.code).toBe(0);
  expect(shown.out).toMatch(/128[,.]?0?0?0?/);
  const document = JSON.parse((await longhaul(["context", id, "--json"])).out) as {
    window: number;
    used: number;
  };
  expect(document.window).toBe(128_000);
  expect(document.used).toBeGreaterThan(1_000);
});
