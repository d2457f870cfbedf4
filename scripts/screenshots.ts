/**
 * Takes the pictures for README and manual, of a session that asks a question and delegates, and of one that waits and is verified:
 *   TEMPORAL_ADDRESS=… TEMPORAL_UI=http://… node scripts/screenshots.ts [asks|verified]
 * Needs a browser as the tests do (CHROME_BIN), Docker and a Temporal server with its Web UI.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, Connection } from "@temporalio/client";
import { chromium, type Page } from "playwright-core";
import { findSessionRow } from "../activities/store/reading.ts";
import { connectDocker } from "../activities/sandbox/docker/connect-docker.ts";
import { browserPath } from "../test/support/browser-path.ts";
import { bySession } from "../test/support/by-session.ts";
import { createClosers } from "../test/support/closers.ts";
import { eventually } from "../test/support/eventually.ts";
import { removeBox } from "../test/support/remove-box.ts";
import { startOwnPostgres } from "../test/support/own-postgres.ts";
import { clientArgs } from "../test/support/program.ts";
import { call, startScriptedModel, text } from "../test/support/scripted-model.ts";
import { startWorkerProcess } from "../test/support/worker-process.ts";

const {
  TEMPORAL_ADDRESS = "127.0.0.1:7233",
  TEMPORAL_UI = "http://127.0.0.1:8233",
  SANDBOX_IMAGE,
  PATH = "",
} = process.env;
const SESSION = "move-to-pnpm";
const VERIFIED_SESSION = "mend-the-parser";
const IMAGES = fileURLToPath(new URL("../docs/images/", import.meta.url));

const FILES = {
  "package.json": '{\n  "name": "shop",\n  "scripts": { "test": "node --test" }\n}\n',
  "package-lock.json": '{ "lockfileVersion": 3 }\n',
  "ci.yml": "steps:\n  - run: pnpm install --frozen-lockfile\n  - run: npm test\n",
  "README.md": "# Shop\n\nInstall with `npm install`, then `npm test`.\n",
};
const bash = (command: string) => call("bash", { command });
const ASKING = bySession({
  "": [
    [text("I look at what is there first."), bash("ls; cat ci.yml; grep -rn npm README.md")],
    [
      call("ask_user", {
        question: "The lockfile is npm's, but CI installs with pnpm. Which one is to stay?",
        options: [
          { label: "pnpm", description: "as CI does" },
          { label: "npm", description: "as the lockfile says" },
        ],
      }),
    ],
    [
      text("pnpm it is. One session looks for what else calls npm, another one rewrites the manual."),
      call("delegate", { task: "Find every place that calls npm, and say which of them matter." }),
      call("delegate", { task: "Change the README from npm to pnpm.", access: "write" }),
    ],
    [
      text("The last places are the lockfile and CI."),
      bash("rm package-lock.json; sed -i 's/npm test/pnpm test/' ci.yml; cat ci.yml README.md"),
    ],
    [text("The project uses pnpm everywhere: CI, README and the lockfile are changed.")],
  ],
  ".s3c0": [
    [bash("grep -rn 'npm ' --include=* . | head")],
    [text("CI's test line and the README call npm; nothing else does.")],
  ],
  ".s3c1": [
    [bash("sed -i 's/`npm /`pnpm /g' README.md; cat README.md")],
    [text("The README says pnpm now.")],
  ],
});

const PARSER_FILES = {
  "package.json": '{\n  "name": "dates",\n  "scripts": { "test": "node --test" }\n}\n',
  "dates.js": 'exports.year = (date) => Number(date.split("-")[2]);\n',
  "dates.test.js": `const { year } = require("./dates.js");
const { equal } = require("node:assert");
const { test } = require("node:test");
test("a year is read from both forms", () => {
  equal(year("2026-11-27"), 2026);
  equal(year("27.11.2026"), 2026);
});
`,
};
const mendedBy = (before: string, after: string) =>
  call("edit_file", { path: "dates.js", old_string: before, new_string: after });
const VERIFIED = bySession({
  "": [
    [text("I look at the parser and its test."), bash("cat dates.js dates.test.js")],
    [
      text("The preview shows the same error. It is deployed again in about 20 minutes, so I wait for that."),
      call("wait", { reason: "the preview is deployed", seconds: 1_200 }),
    ],
    [text("The year is the first part, not the last one."), mendedBy("[2]", "[0]")],
    [text("The parser reads the year now, and all tests pass.")],
    [
      text("The second form has the year at its end."),
      mendedBy('date.split("-")[0]', "/\\d{4}/.exec(date)[0]"),
    ],
    [text("The parser finds the year in both forms.")],
  ],
});

/** A request's cache key is its session's id. */
const MODEL: typeof ASKING = (request) =>
  request.cacheKey?.startsWith(VERIFIED_SESSION) ? VERIFIED(request) : ASKING(request);

const home = mkdtempSync(join(tmpdir(), "longhaul-pictures-"));
const closers = createClosers(async () => rmSync(home, { recursive: true, force: true }));
try {
  await takePictures();
} finally {
  await closers.close();
}

async function takePictures(): Promise<void> {
  const { environment, isSession } = await startServices();
  const browser = await chromium.launch({ executablePath: browserPath ?? "", args: ["--no-sandbox"] });
  closers.add(() => browser.close());
  const open = async (url: string, width: number, height: number) => {
    const page = await browser.newPage({ viewport: { width, height } });
    await page.goto(url);
    return page;
  };

  const page = await startPage(environment);
  const uiOf = (id: string) => open(`${TEMPORAL_UI}/namespaces/default/workflows/${id}`, 1100, 720);
  const [, , only] = process.argv;
  if (only !== "verified") {
    longhaul(environment, "start", "Make this project use one package manager everywhere.", ...startFlags());
    await isSession(SESSION, "waiting");
    await takeTerminal(await open("about:blank", 1000, 400), environment);
    await takePhone(await open(page, 390, 780));
    const ui = await uiOf(SESSION);
    await takeAnswer(ui);
    await isSession(SESSION, "completed");
    await takeRelationships(ui);
    await takeDesk(await open(page, 1100, 720));
  }
  if (only !== "asks") {
    longhaul(environment, "start", "Mend the date parser.", ...verifiedFlags());
    await isSession(VERIFIED_SESSION, "waiting");
    await takeWait(await uiOf(VERIFIED_SESSION));
    await outputOf(longhaul(environment, "wake", VERIFIED_SESSION));
    await isSession(VERIFIED_SESSION, "completed");
    await takeVerified(await open(page, 1100, 900));
    await takeReport(await open("about:blank", 1100, 560), environment);
  }
}

type Environment = Readonly<Record<string, string>>;

/** @returns what `longhaul` needs to use them, and a function that waits until the session has a status */
async function startServices() {
  const postgres = await startOwnPostgres();
  closers.add(() => postgres.close());
  const model = await startScriptedModel(MODEL, { apiKey: "sk-pictures" });
  closers.add(() => model.close());
  const environment: Environment = {
    PATH,
    HOME: home,
    DATABASE_URL: postgres.url,
    TEMPORAL_ADDRESS,
    LONGHAUL_TASK_QUEUE: `pictures-${process.pid}`,
    LONGHAUL_NO_SETUP: "1",
    LONGHAUL_LOG_LEVEL: "warn",
    OPENAI_BASE_URL: model.baseUrl,
    OPENAI_API_KEY: "sk-pictures",
    LONGHAUL_MODEL: "gpt-4o",
    ...(SANDBOX_IMAGE === undefined ? {} : { SANDBOX_IMAGE }),
  };
  const worker = await startWorkerProcess(environment);
  closers.add(() => worker.terminate());
  const connection = await Connection.connect({ address: TEMPORAL_ADDRESS });
  const { workflow } = new Client({ connection });
  const docker = connectDocker();
  const end = async () => {
    for (const id of [SESSION, VERIFIED_SESSION]) {
      await workflow
        .getHandle(id)
        .terminate("its pictures are taken")
        .catch(() => undefined);
      await removeBox(docker, id);
    }
  };
  closers.add(() => connection.close(), end);
  // An earlier attempt may have left a session.
  await end();
  const isSession = (id: string, status: string) =>
    eventually(
      `${id} is ${status}`,
      async () => (await findSessionRow(postgres.store.db, id))?.status === status,
      120_000,
    );
  return { environment, isSession };
}

/** Starts the server of Longhaul's page. @returns the page's address */
async function startPage(environment: Environment): Promise<string> {
  const server = longhaul(environment, "serve", "--port", "0");
  closers.add(async () => void server.kill("SIGTERM"));
  let printed = "";
  server.stdout.setEncoding("utf8").on("data", (piece: string) => (printed += piece));
  return eventually("the page", () => /^http.*$/m.exec(printed)?.[0], 60_000);
}

/** Writes the project and the settings. @returns the flags of `start` that name them */
function startFlags(): string[] {
  const project = writeProject("shop", FILES);
  const settings = join(home, "settings.yaml");
  writeFileSync(settings, "sandbox: { network: none }\ndelegate: { enabled: true }\n");
  return ["--id", SESSION, "--workspace", project, "--config", settings];
}

function verifiedFlags(): string[] {
  const project = writeProject("dates", PARSER_FILES);
  const settings = join(home, "verified.yaml");
  writeFileSync(settings, "sandbox: { network: none }\n");
  const flags = ["--id", VERIFIED_SESSION, "--workspace", project, "--config", settings];
  return [...flags, "--verify", "npm test", "--verify", "node --check dates.js"];
}

function writeProject(name: string, files: Readonly<Record<string, string>>): string {
  const project = join(home, name);
  mkdirSync(project);
  for (const [path, content] of Object.entries(files)) writeFileSync(join(project, path), content);
  return project;
}

async function takeTerminal(terminal: Page, environment: Environment): Promise<void> {
  const watched = await outputOf(longhaul(environment, "watch", SESSION, "--exit-on-question"));
  // Shows hints as `npm run longhaul --` prints them, whatever the folder of this checkout.
  await showTerminal(terminal, watched.replaceAll(/node \S*longhaul\.mjs/g, "npm run longhaul --"));
  await terminal.locator("pre").screenshot({ path: imagePath("terminal-question") });
}

async function takePhone(phone: Page): Promise<void> {
  await phone.locator(`#list [data-id="${SESSION}"]`).click();
  await phone.locator("#questions button").first().waitFor();
  await phone.locator("#log summary").nth(1).waitFor();
  await phone.screenshot({ path: imagePath("page-phone") });
}

/** Answers the session's question in Temporal's Web UI. */
async function takeAnswer(ui: Page): Promise<void> {
  await ui.getByRole("button", { name: "More Actions" }).click();
  await ui.getByRole("menuitem", { name: "Send a Signal" }).click();
  const form = ui.locator("dialog[open]");
  await form.getByTestId("signal-select-button").click();
  await form.locator("li", { hasText: "Answer a question" }).click();
  await form.locator("[contenteditable=true]").fill('"pnpm"');
  await ui.screenshot({ path: imagePath("web-ui-answer") });
  await form.getByRole("button", { name: "Submit" }).click();
}

async function takeRelationships(ui: Page): Promise<void> {
  await ui.goto(ui.url().replace(/\/history.*$/, "/relationships"));
  // With the rows of both delegates below the tree.
  await ui.setViewportSize({ width: 1100, height: 1080 });
  await ui.getByText("Expand All").click();
  await ui.getByText(`${SESSION}.s3c1`).first().waitFor();
  await ui.screenshot({ path: imagePath("web-ui-relationships") });
}

async function takeDesk(desk: Page): Promise<void> {
  await desk.locator(`#list [data-id="${SESSION}"]`).click();
  await desk.locator("#log .outcome").waitFor();
  await desk.screenshot({ path: imagePath("page") });
}

/** The current details of a session that waits, in Temporal's Web UI. */
async function takeWait(ui: Page): Promise<void> {
  await ui.getByText("User Metadata").first().click();
  await ui.setViewportSize({ width: 1100, height: 1020 });
  // The details are Markdown in frames of their own.
  await eventually("the wait is shown", async () => {
    const shown = ui.frames().map((frame) => frame.getByText("Waits until").count());
    return (await Promise.all(shown)).some((count) => count > 0);
  });
  await ui.screenshot({ path: imagePath("web-ui-wait") });
}

async function takeVerified(desk: Page): Promise<void> {
  await desk.locator(`#list [data-id="${VERIFIED_SESSION}"]`).click();
  await desk.locator("#log .outcome").waitFor();
  await desk.screenshot({ path: imagePath("page-verified") });
}

async function takeReport(report: Page, environment: Environment): Promise<void> {
  const file = join(home, "report.html");
  await outputOf(longhaul(environment, "report", VERIFIED_SESSION, file));
  await report.goto(`file://${file}`);
  await report.screenshot({ path: imagePath("report-verified") });
}

function imagePath(name: string): string {
  return join(IMAGES, `${name}.png`);
}

function longhaul(environment: Environment, ...args: string[]) {
  return spawn(process.execPath, clientArgs(args), {
    cwd: home,
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** @returns what a command prints, both streams in order */
async function outputOf(command: ReturnType<typeof spawn>): Promise<string> {
  let text = "";
  for (const stream of [command.stdout, command.stderr])
    stream?.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  await once(command, "close");
  return text.trim();
}

async function showTerminal(page: Page, text: string): Promise<void> {
  await page.setContent(
    "<style>body{margin:0}pre{display:inline-block;margin:0;padding:20px 24px;background:#0d1117;color:#e6edf3;font:14px/1.5 'DejaVu Sans Mono',monospace;max-width:952px;white-space:pre-wrap}</style><pre></pre>",
  );
  await page.locator("pre").evaluate((pre, content) => (pre.textContent = content), text);
}
