/** A session that waits for a while, and is verified. */
import { join } from "node:path";
import type { Page } from "playwright-core";
import { bySession } from "../../test/support/by-session.ts";
import { call, text } from "../../test/support/scripted-model.ts";
import { imagePath, showDetails, type Stand, type Story } from "./stand.ts";

const SESSION = "mend-the-parser";

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
    [text("I look at the parser and its test."), call("bash", { command: "cat dates.js dates.test.js" })],
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

export const verified: Story = {
  session: SESSION,
  model: VERIFIED,
  async take(stand) {
    const project = stand.writeProject("dates", PARSER_FILES);
    const settings = stand.writeSettings("sandbox: { network: none }\n");
    const flags = ["--id", SESSION, "--workspace", project, "--config", settings];
    const checks = ["--verify", "npm test", "--verify", "node --check dates.js"];
    await stand.longhaul("start", "Mend the date parser.", ...flags, ...checks);
    await stand.isSession("waiting");
    const ui = await stand.uiOf(SESSION);
    await showDetails(ui, "Waits until");
    await ui.screenshot({ path: imagePath("web-ui-wait") });
    await stand.longhaul("wake", SESSION);
    await stand.isSession("completed");
    await takeVerified(await stand.open(await stand.startPage(), 1100, 900));
    await takeReport(await stand.open("about:blank", 1100, 560), stand);
  },
};

async function takeVerified(desk: Page): Promise<void> {
  await desk.locator(`#list [data-id="${SESSION}"]`).click();
  await desk.locator("#log .outcome").waitFor();
  await desk.screenshot({ path: imagePath("page-verified") });
}

async function takeReport(report: Page, stand: Stand): Promise<void> {
  const file = join(stand.home, "report.html");
  await stand.longhaul("report", SESSION, file);
  await report.goto(`file://${file}`);
  await report.screenshot({ path: imagePath("report-verified") });
}
