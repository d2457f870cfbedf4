/** A session that asks a question and delegates. */
import type { Page } from "playwright-core";
import { bySession } from "../../test/support/by-session.ts";
import { call, text } from "../../test/support/scripted-model.ts";
import { imagePath, type Stand, type Story } from "./stand.ts";

const SESSION = "move-to-pnpm";

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

export const asks: Story = {
  session: SESSION,
  model: ASKING,
  async take(stand) {
    const project = stand.writeProject("shop", FILES);
    const settings = stand.writeSettings("sandbox: { network: none }\ndelegate: { enabled: true }\n");
    const flags = ["--id", SESSION, "--workspace", project, "--config", settings];
    await stand.longhaul("start", "Make this project use one package manager everywhere.", ...flags);
    await stand.isSession("waiting");
    const page = await stand.startPage();
    await takeTerminal(await stand.open("about:blank", 1000, 400), stand);
    await takePhone(await stand.open(page, 390, 780));
    const ui = await stand.uiOf(SESSION);
    await takeAnswer(ui);
    await stand.isSession("completed");
    await takeRelationships(ui);
    await takeDesk(await stand.open(page, 1100, 720));
  },
};

async function takeTerminal(terminal: Page, stand: Stand): Promise<void> {
  const watched = await stand.longhaul("watch", SESSION, "--exit-on-question");
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

async function showTerminal(page: Page, text: string): Promise<void> {
  await page.setContent(
    "<style>body{margin:0}pre{display:inline-block;margin:0;padding:20px 24px;background:#0d1117;color:#e6edf3;font:14px/1.5 'DejaVu Sans Mono',monospace;max-width:952px;white-space:pre-wrap}</style><pre></pre>",
  );
  await page.locator("pre").evaluate((pre, content) => (pre.textContent = content), text);
}
