import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder, finished, longhaul } from "../support/commands/longhaul.ts";

test("writes one HTML file that loads nothing, and prints its path; - is standard output", async () => {
  const id = await finished("run: echo '<b>bold</b>' > page.html\nsay: Done.");
  const cwd = emptyFolder();
  const { code, out } = await longhaul(["report", id], { cwd });
  expect({ code, out: out.trim().endsWith(join(cwd, `${id}.html`)) }).toEqual({ code: 0, out: true });
  const page = readFileSync(join(cwd, `${id}.html`), "utf8");
  expect(page).toMatch(/^<!doctype html>/i);
  expect(page).not.toMatch(/<(script|link|img)[^>]+(src|href)="?https?:/i);
  expect(page).not.toContain("<b>bold</b>");
  expect((await longhaul(["report", id, "-"])).out).toMatch(/^<!doctype html>/i);
});

test("an unknown session is 5", async () => {
  expect(await longhaul(["report", "no-such-session", "-"])).toMatchObject({ code: 5, out: "" });
});
