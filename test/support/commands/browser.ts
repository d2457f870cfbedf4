/** A real browser, where this machine has one. */
import { chromium, type Browser, type Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { browserPath } from "../browser-path.ts";
import { createClosers } from "../closers.ts";

/** For a test's name, where it is left out. */
export const noBrowser =
  browserPath === undefined ? " (skipped: no Chromium on PATH, and no CHROME_BIN)" : "";

/** A browser for one test. The container that tests run in may not let it have a sandbox of its own. */
export async function openBrowser(): Promise<Browser> {
  const closers = createClosers();
  onTestFinished(closers.close);
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
  /** What was asked for, data in the page itself aside. */
  readonly requests: string[];
}

/** A page of this width, in pixels, and what goes on in it. */
export async function lookAt(browser: Browser, url: string, width: number, height = 844): Promise<Looked> {
  const page = await browser.newPage({ viewport: { width, height } });
  const [errors, requests]: [string[], string[]] = [[], []];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => !request.url().startsWith("data:") && requests.push(request.url()));
  await page.goto(url);
  return { page, errors, requests };
}

/** Runs in the page, so it is text: this program knows no document. */
const TOO_WIDE = `(() => {
  const root = document.documentElement;
  const wide = [...document.body.querySelectorAll("*")].filter(
    (part) => part.getBoundingClientRect().right > root.clientWidth + 0.5 && !part.parentElement.closest("pre, .scroll"),
  );
  const found = wide.map((part) => part.outerHTML.slice(0, 120));
  return root.scrollWidth > root.clientWidth ? ["the page: " + root.scrollWidth + " px", ...found] : found;
})()`;

/** What reaches over the right edge of the screen; what lies in code or in a table that scrolls by itself may. */
export const tooWide = (page: Page): Promise<string[]> => page.evaluate(TOO_WIDE);
