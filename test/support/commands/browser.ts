/** A real browser, if this machine has one. */
import { chromium, type Browser, type Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { browserPath } from "../browser-path.ts";
import { createClosers } from "../closers.ts";
import { eventually } from "../eventually.ts";
import { starting } from "./longhaul.ts";

/** How long something on a page is waited for, in ms. Source: ours, of a machine that has much else to do. */
const WAIT_MS = 60_000;

/** Added to a test's name if the test is skipped. */
export const noBrowser =
  browserPath === undefined ? " (skipped: no Chromium on PATH, and no CHROME_BIN)" : "";

/** `serve` for one test. @returns its address, and its errors */
export async function serving(): Promise<{ url: string; faults: () => string }> {
  const server = starting(["serve", "--port", "0"]);
  onTestFinished(async () => {
    server.kill("SIGTERM");
    await server.ended;
  });
  const url = await eventually(
    "the line with the address",
    () => /^http.*$/m.exec(server.out())?.[0],
    60_000,
  );
  return { url, faults: server.err };
}

/** A browser for one test, without its own sandbox, which a container may not allow. A failure says what its pages show. */
export async function openBrowser(): Promise<Browser> {
  const closers = createClosers();
  onTestFinished(closers.close);
  onTestFinished(async ({ task: { result } }) => {
    if (result?.state !== "fail") return;
    for (const page of browser.contexts().flatMap((context) => context.pages())) {
      await page.evaluate('for (const part of document.querySelectorAll("details")) part.open = true');
      for (const error of result.errors ?? [])
        error.message += `\n${page.url()} shows:\n${await page.innerText("body")}`;
    }
  });
  const browser = await chromium.launch({
    executablePath: browserPath ?? "",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  closers.add(() => browser.close());
  return browser;
}

export interface Looked {
  readonly page: Page;
  /** Errors of the console and of scripts. */
  readonly errors: string[];
  /** Requested addresses, without `data:` ones. */
  readonly requests: string[];
}

/** A page of this width in pixels, with its errors and requests. */
export async function lookAt(browser: Browser, url: string, width: number, height = 844): Promise<Looked> {
  const page = await browser.newPage({ viewport: { width, height } });
  page.setDefaultTimeout(WAIT_MS);
  const [errors, requests]: [string[], string[]] = [[], []];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => !request.url().startsWith("data:") && requests.push(request.url()));
  await page.goto(url);
  return { page, errors, requests };
}

/** Runs in the page, so it is text: this program's types have no document. */
const TOO_WIDE = `(() => {
  const root = document.documentElement;
  const wide = [...document.body.querySelectorAll("*")].filter(
    (part) => part.getBoundingClientRect().right > root.clientWidth + 0.5 && !part.parentElement.closest("pre, .scroll"),
  );
  const found = wide.map((part) => part.outerHTML.slice(0, 120));
  return root.scrollWidth > root.clientWidth ? ["the page: " + root.scrollWidth + " px", ...found] : found;
})()`;

/** Elements that reach over the right edge of the screen, except code and tables that scroll. */
export const tooWide = (page: Page): Promise<string[]> => page.evaluate(TOO_WIDE);
