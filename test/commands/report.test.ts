import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder, finished, longhaul } from "../support/commands/longhaul.ts";
import { png } from "../support/images.ts";

test("writes one HTML file that loads nothing, and prints its path; - is standard output", async () => {
  const cwd = emptyFolder();
  const picture = png(8, 8, [200, 30, 30]);
  writeFileSync(join(cwd, "red.png"), picture);
  const task = "run: echo '<b>bold</b>' > page.html\nrun: exit 3\nsay: **Done**.";
  const id = await finished(task, "--image", join(cwd, "red.png"));
  const { code, out } = await longhaul(["report", id], { cwd });
  expect({ code, out: out.trim().endsWith(join(cwd, `${id}.html`)) }).toEqual({ code: 0, out: true });
  const page = readFileSync(join(cwd, `${id}.html`), "utf8");
  expect(page).toMatch(/^<!doctype html>/i);
  expect(page).not.toMatch(/<(script|link|img)[^>]+(src|href)="?https?:/i);
  expect(page).not.toContain("<b>bold</b>");
  expect(page).toContain(
    `alt="attached picture 1" src="data:image/png;base64,${picture.toString("base64")}"`,
  );
  expect(page).toContain("One call failed");
  expect(page).toMatch(/<details class="call failed" id="call-[^"]+" open>/);
  expect(page).toContain("exit 3");
  expect(page).toContain("<strong>Done</strong>.");
  expect(page).toMatch(
    /<code>page\.html<\/code>\s*<span class="counts"\s*><span class="add" aria-label="1 line added"/,
  );
  expect((await longhaul(["report", id, "-"])).out).toMatch(/^<!doctype html>/i);
});

test("a file that cannot be written is said in words", async () => {
  const id = await finished("say: Done.");
  const { code, err } = await longhaul(["report", id, "/nowhere/report.html"]);
  expect(code).toBe(5);
  expect(err).toContain("/nowhere/report.html cannot be written: its folder does not exist.");
  expect(err).not.toMatch(/ENOENT|stack/);
});
