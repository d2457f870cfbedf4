/**
 * Takes the pictures for README and manual, of a session that asks a question and delegates:
 *   TEMPORAL_ADDRESS=… TEMPORAL_UI=http://… node scripts/screenshots.ts
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
import { browserPath } from "../test/support/browser-path.ts";
import { bySession } from "../test/support/by-session.ts";
import { createClosers } from "../test/support/closers.ts";
import { eventually } from "../test/support/eventually.ts";
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
const IMAGES = fileURLToPath(new URL("../docs/images/", import.meta.url));

const FILES = {
  "package.json": '{\n  "name": "shop",\n  "scripts": { "test": "node --test" }\n}\n',
  "package-lock.json": '{ "lockfileVersion": 3 }\n',
  "ci.yml": "steps:\n  - run: pnpm install --frozen-lockfile\n  - run: npm test\n",
  "README.md": "# Shop\n\nInstall with `npm install`, then `npm test`.\n",
};
const bash = (command: string) => call("bash", { command });
const MODEL = bySession({
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
  longhaul(environment, "start", "Make this project use one package manager everywhere.", ...startFlags());
  await isSession("waiting");
  await takeTerminal(await open("about:blank", 1000, 400), environment);
  await takePhone(await open(page, 390, 780));
  const ui = await open(`${TEMPORAL_UI}/namespaces/default/workflows/${SESSION}`, 1100, 720);
  await takeAnswer(ui);
  await isSession("completed");
  await takeRelationships(ui);
  await takeDesk(await open(page, 1100, 720));
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
  const workflow = new Client({ connection }).workflow.getHandle(SESSION);
  const end = () => workflow.terminate("its pictures are taken").catch(() => undefined);
  closers.add(() => connection.close(), end);
  // An earlier attempt may have left a session.
  await end();
  const isSession = (status: string) =>
    eventually(
      `the session is ${status}`,
      async () => (await findSessionRow(postgres.store.db, SESSION))?.status === status,
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
  const project = join(home, "shop");
  const settings = join(home, "settings.yaml");
  mkdirSync(project);
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(project, name), content);
  writeFileSync(settings, "sandbox: { network: none }\ndelegate: { enabled: true }\n");
  return ["--id", SESSION, "--workspace", project, "--config", settings];
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
