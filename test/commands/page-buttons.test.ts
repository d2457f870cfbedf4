/** The buttons of a session on the page of `serve`, pressed in a real browser on a phone. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { inputRequired } from "@modelcontextprotocol/server";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { browserPath } from "../support/browser-path.ts";
import { lookAt, noBrowser, openBrowser, serving, tooWide } from "../support/commands/browser.ts";
import { begin, emptyFolder, untilRunning, untilStatus } from "../support/commands/longhaul.ts";
import { startMcpServer } from "../support/mcp-server.ts";

const PHONE = 390;

async function opened(id: string) {
  const [{ url, faults }, browser] = await Promise.all([serving(), openBrowser()]);
  const { page, errors } = await lookAt(browser, url, PHONE);
  await page.locator(`#list [data-id="${id}"]`).click();
  return { page, errors, faults };
}

const press = (page: Page, label: string) =>
  page
    .locator("#questions button", { hasText: new RegExp(`^${label.replaceAll("$", String.raw`\$`)}$`) })
    .click();

// A second try: the browser is another program, which a busy machine lets fall behind. No other test has one.
describe.skipIf(browserPath === undefined)(`in a browser${noBrowser}`, { retry: 1 }, () => {
  test("a server's questions, a call that needs approval and a limit are answered on a phone", async () => {
    const server = await startMcpServer((made) => {
      made.registerTool("create", { description: "Makes an issue." }, async ({ mcpReq }) => {
        const { inputResponses } = mcpReq;
        if (inputResponses !== undefined)
          return { content: [{ type: "text", text: `made ${JSON.stringify(inputResponses)}` }] };
        const requestedSchema = z.object({ project: z.enum(["alpha", "beta"]), copies: z.number().int() });
        const where = inputRequired.elicit({ message: "Which project?", requestedSchema });
        return inputRequired({ inputRequests: { where }, requestState: "s" });
      });
    });
    const config = join(emptyFolder(), "settings.yaml");
    const settings = {
      mcpServers: { tracker: { url: server.url } },
      permissions: [{ tool: "bash", match: "git push *", action: "ask" }],
      limits: { onLimit: "ask", maxSteps: 2 },
    };
    writeFileSync(config, JSON.stringify(settings));
    const id = await begin(
      "call: tracker__create {}\nrun: git push origin main\nsay: Done.",
      "--config",
      config,
    );
    await untilStatus(id, ({ status }) => status === "waiting");
    const { page, errors, faults } = await opened(id);
    const question = page.locator("#questions .question");

    await question.filter({ hasText: "1 of 2: project" }).waitFor();
    // One of the options is the answer: there is no place for words that would be refused.
    expect(await question.locator("form").count()).toBe(0);
    expect(await tooWide(page)).toEqual([]);
    await press(page, "beta");
    await question.filter({ hasText: "2 of 2: copies" }).waitFor();
    await question.locator("input").fill("3");
    await press(page, "Answer");

    await question.filter({ hasText: "Approval needed s2c0" }).waitFor();
    expect(await question.textContent()).toContain("git push origin main");
    expect(await tooWide(page)).toEqual([]);
    await question.locator("input").fill("use the staging branch");
    await press(page, "Deny with a reason");

    await question.filter({ hasText: "Limit reached s3steps" }).waitFor();
    await question.locator("input").fill("more");
    await press(page, "Answer");
    await page.locator("#problem", { hasText: 'an amount such as "20 steps"' }).waitFor();
    expect(await tooWide(page)).toEqual([]);
    await question.locator("input").fill("5 steps");
    await press(page, "Answer");
    await page.locator("#log .outcome", { hasText: "completed" }).waitFor();

    const log = await page.locator("#log").textContent();
    expect(log).toContain('made {"where":{"action":"accept","content":{"project":"beta","copies":3}}}');
    expect(log).toContain("use the staging branch");
    expect(log).toContain("another 5 steps");
    // The browser notes the one answer that was refused.
    expect(
      errors.filter((error) => !error.includes("status of 4")),
      faults(),
    ).toEqual([]);
  });

  test("a message is taken back, a step interrupted with another one, and a run cancelled", async () => {
    const id = await begin("run: sleep 300\nsay: No.");
    await untilRunning(id);
    const { page, errors, faults } = await opened(id);
    await page.fill("#message", "Not this one.");
    await page.click("#send");
    await page.locator("#queue button", { hasText: "Take back" }).click();
    await page.locator("#log .note", { hasText: "taken back" }).waitFor();
    await page.locator("#queue li").waitFor({ state: "detached" });

    await page.fill("#message", "run: sleep 301");
    await page.click("#interrupt");
    await page.locator("#log summary", { hasText: "sleep 301" }).waitFor();
    // Empty once the server has answered, which may be after the new step began.
    await page.locator("#message:placeholder-shown").waitFor();
    expect(await page.locator("#log .person").allTextContents()).toEqual([
      "run: sleep 300\nsay: No.",
      "run: sleep 301",
    ]);

    page.once("dialog", (dialog) => dialog.accept());
    await page.click("#cancel");
    await page.locator("#log .outcome", { hasText: "cancelled" }).waitFor();
    await page.locator("#state.cancelled").waitFor();
    expect(await page.locator("#cancel").isVisible()).toBe(false);
    expect(await tooWide(page)).toEqual([]);
    expect(errors, faults()).toEqual([]);
  });

  test("a task is started, and one that is refused says why and keeps what was written", async () => {
    const [{ url, faults }, browser] = await Promise.all([serving(), openBrowser()]);
    const { page, errors } = await lookAt(browser, url, PHONE);
    await page.click("#new");
    await page.fill("#task", "say: Started on a phone.");
    await page.fill("#repo", "ftp://example.test/a.git");
    await page.click("#begin");
    await page.locator("#refused", { hasText: "A repository's address has the form" }).waitFor();
    expect(await tooWide(page)).toEqual([]);
    await page.fill("#repo", "");
    await page.click("#begin");
    await page.locator("#log .outcome", { hasText: "completed" }).waitFor();
    expect(await page.locator("#log .words").allTextContents()).toEqual(["Started on a phone."]);

    await page.click("#back");
    await page.click("#new");
    expect(await page.inputValue("#task")).toBe("");
    // The browser notes the one start that was refused.
    expect(
      errors.filter((error) => !error.includes("status of 4")),
      faults(),
    ).toEqual([]);
  });
});
