import { expect, it } from "vitest";
import { readPorcelain } from "../../../activities/git/push.ts";

it("reads a push's outcome by its flag, not by its text", () => {
  const out = (line: string) => `To https://host/app\n${line}\nDone\n`;
  const ref = "refs/heads/b";
  expect(readPorcelain(out(`*\tabc:${ref}\t[new branch]`), ref)?.flag).toBe("*");
  expect(readPorcelain(out(`=\tabc:${ref}\t[up to date]`), ref)?.flag).toBe("=");
  expect(readPorcelain(out(`!\tabc:${ref}\t[rejected] (fetch first)`), ref)).toEqual({
    flag: "!",
    summary: "[rejected] (fetch first)",
  });
  expect(readPorcelain("", ref)).toBeUndefined();
});
