/** The page of `serve` and the report in a real browser, on a phone and on a desktop. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { bigPng } from "../support/images.ts";
import { browserPath } from "../support/browser-path.ts";
import { lookAt, noBrowser, openBrowser, serving, tooWide } from "../support/commands/browser.ts";
import {
  begin,
  emptyFolder,
  finished,
  longhaul,
  starting,
  untilRunning,
  untilStatus,
} from "../support/commands/longhaul.ts";

const PHONE = 390;
const DESK = 1280;
/** Text that a page would run or load if it treated it as markup. */
const HOSTILE = `<script>document.title = "owned"</script><img src=x onerror="document.title='owned'">`;
const LONG_WORD = "w".repeat(400);

// A second try: the browser is another program, which a busy machine lets fall behind. No other test has one.
describe.skipIf(browserPath === undefined)(`in a browser${noBrowser}`, { retry: 1 }, () => {
  test("a phone answers, follows and continues; no result is markup, nothing is too wide", async () => {
    const ask = JSON.stringify({ question: `npm or pnpm? ${HOSTILE}`, options: ["npm", "pnpm"] });
    const words = "The words of this answer come one after the other, and whoever looks reads along.";
    const id = await begin(
      `run: echo '${HOSTILE.replaceAll("'", "`")}' ${LONG_WORD}\nask: ${ask}\nslowly: ${words}`,
    );
    const [{ url, faults }, browser] = await Promise.all([serving(), openBrowser()]);
    await untilStatus(id, ({ status }) => status === "waiting");
    const { page, errors } = await lookAt(browser, url, PHONE);
    await page.locator(`#list [data-id="${id}"]`).click();
    await page.locator("#log summary").first().click();
    await page.locator("#log details").first().locator("pre", { hasText: "<script>" }).last().waitFor();
    expect(await tooWide(page)).toEqual([]);
    await page.locator("#questions button", { hasText: "pnpm" }).click();
    const live = page.locator("#log .words.live");
    await live.waitFor();
    expect(words.startsWith((await live.textContent()) ?? "none")).toBe(true);
    await page.locator("#log .outcome").waitFor();
    await page.fill("#message", "say: Heard you.");
    const picture = { name: "large.png", mimeType: "image/png", buffer: bigPng(200_000, 3) };
    await page.setInputFiles("#files", picture);
    expect(await page.textContent("#attached")).toBe("1 attached");
    expect(await tooWide(page)).toEqual([]);
    await page.click("#send");
    await page.locator("#log .words", { hasText: "Heard you." }).waitFor();
    expect(await page.textContent("#attached")).toBe("Attach");
    expect(await page.locator("#log .note", { hasText: "answered" }).textContent()).toContain("pnpm");
    expect(await page.locator("main script, main img").count()).toBe(0);
    expect(await page.title()).toBe("longhaul");
    expect(await tooWide(page)).toEqual([]);

    const desk = await lookAt(browser, url, DESK);
    await desk.page.locator(`#list [data-id="${id}"]`).click();
    await desk.page.locator("#log .words", { hasText: "Heard you." }).waitFor();
    expect(await desk.page.locator("#list").isVisible()).toBe(true);
    expect(await tooWide(desk.page)).toEqual([]);
    expect([...errors, ...desk.errors], faults()).toEqual([]);
  });

  test("batches and schedules stand below the sessions with links and buttons, and fit a phone", async () => {
    const name = `page-${randomBytes(3).toString("hex")}`;
    const cwd = emptyFolder();
    const items = [
      { id: "one", task: `say: One. ${HOSTILE}` },
      { id: "two", task: "refuse" },
    ];
    writeFileSync(join(cwd, "tasks.jsonl"), items.map((item) => JSON.stringify(item)).join("\n"));
    expect((await longhaul(["batch", "tasks.jsonl", "--name", name], { cwd })).code).toBe(1);
    const create = ["schedule", "create", name, "--cron", "0 6 1 1 *", "--", "say: Done."];
    expect((await longhaul(create)).code).toBe(0);
    onTestFinished(async () => void (await longhaul(["schedule", "delete", name])));
    const [{ url, faults }, browser] = await Promise.all([serving(), openBrowser()]);
    const { page, errors } = await lookAt(browser, url, PHONE);
    const batch = page.locator(`#many [data-many="batch ${name}"]`);
    await batch.waitFor();
    expect(await batch.textContent()).toContain("1 of 2 completed, 1 failed");
    expect(await page.locator("#many", { hasText: "0 6 1 1 *" }).count()).toBe(1);
    await batch.click();
    const item = page.locator(`#many [data-many="session ${name}-one"]`);
    await item.waitFor();
    expect(await batch.getAttribute("aria-expanded")).toBe("true");
    expect(await tooWide(page)).toEqual([]);

    const schedule = page.locator(`#many [data-many="schedule ${name}"]`);
    await schedule.click();
    await item.waitFor({ state: "detached" });
    const press = (label: string) => page.locator("#many .actions button", { hasText: label }).click();
    await press("Pause");
    await schedule.locator(".badge.paused").waitFor();
    await press("Resume");
    await schedule.locator(".badge.active").waitFor();
    await press("Run now");
    const session = page.locator(`#many [data-many^="session ${name}-"]`);
    await session.waitFor();
    expect(await tooWide(page)).toEqual([]);
    await session.click();
    await page.locator("#log .outcome", { hasText: "completed" }).waitFor();

    await page.click("#back");
    await batch.click();
    await item.click();
    await page.locator("#log .words", { hasText: "One." }).waitFor();
    expect(await page.locator("main script, main img").count()).toBe(0);
    expect(errors, faults()).toEqual([]);
  });

  test("a batch that runs is cancelled by its button, once a person has said yes", async () => {
    const name = `page-${randomBytes(3).toString("hex")}`;
    const cwd = emptyFolder();
    writeFileSync(join(cwd, "tasks.jsonl"), JSON.stringify({ id: "long", task: "run: sleep 300\nsay: No." }));
    const running = starting(["batch", "tasks.jsonl", "--name", name], { cwd });
    const [{ url, faults }, browser] = await Promise.all([serving(), openBrowser()]);
    await untilRunning(`${name}-long`);
    const { page, errors } = await lookAt(browser, url, PHONE);
    const batch = page.locator(`#many [data-many="batch ${name}"]`);
    await batch.click();
    const cancel = page.locator("#many .actions button", { hasText: "Cancel batch" });
    page.once("dialog", (dialog) => dialog.dismiss());
    await cancel.click();
    await batch.locator(".badge.running").waitFor();
    page.once("dialog", (dialog) => dialog.accept());
    await cancel.click();
    expect((await running.ended).code).toBe(6);
    await cancel.waitFor({ state: "detached" });
    await untilStatus(`${name}-long`, ({ status }) => status === "cancelled");
    expect(errors, faults()).toEqual([]);
  });

  test("a report asks for nothing, has its failures one key away, and fits a phone", async () => {
    const id = await finished(
      `run: echo '<b>${LONG_WORD}</b>'\nrun: exit 3\nsay: Done, with \`${LONG_WORD}\`.`,
    );
    const { out } = await longhaul(["report", id, "-"]);
    const file = join(emptyFolder(), "report.html");
    writeFileSync(file, out);
    const url = pathToFileURL(file).href;
    const browser = await openBrowser();
    for (const width of [PHONE, DESK]) {
      const { page, errors, requests } = await lookAt(browser, url, width);
      expect(await tooWide(page)).toEqual([]);
      // The first link of all, then the first of its list.
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      expect(new URL(page.url()).hash).toBe("#failures");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      const failed = page.locator("details.call:target");
      expect(await failed.textContent()).toContain("exit 3");
      expect((await failed.boundingBox())?.y).toBeLessThan(page.viewportSize()?.height ?? 0);
      expect({ errors, requests }).toEqual({ errors: [], requests: [url] });
    }
  });
});
