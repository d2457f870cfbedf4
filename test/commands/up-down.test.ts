import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, onTestFinished, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { emptyFolder } from "../support/commands/longhaul.ts";

const project = fileURLToPath(new URL("../..", import.meta.url));
const SOURCES = /^(activities|client|scripts|worker|workflows|docs)$|^(package(-lock)?|tsconfig)\.json$/;

/** A clone of its own: `up` and `down` keep what they started in the project's folder. */
function clone(): string {
  const folder = emptyFolder();
  for (const name of readdirSync(project).filter((each) => SOURCES.test(each)))
    cpSync(join(project, name), join(folder, name), { recursive: true });
  symlinkSync(join(project, "node_modules"), join(folder, "node_modules"));
  return folder;
}

function start(folder: string, words: readonly string[]) {
  let err = "";
  const { OPENAI_API_KEY: key, OPENAI_BASE_URL: url, ...rest } = inject("commandsEnvironment");
  const child = spawn(
    process.execPath,
    ["--import", join(folder, "scripts", "quick-start.mjs"), join(folder, "client", "main.ts"), ...words],
    {
      cwd: folder,
      env: { PATH: process.env["PATH"], ...rest, OPENAI_API_KEY: key, OPENAI_BASE_URL: url },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  child.stdout.setEncoding("utf8").on("data", (text: string) => (err += text));
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "close").then(() => ({ code: child.exitCode, err }));
  return { child, err: () => err, ended };
}

test("up stays until Ctrl-C and ends what it started; down says that nothing runs that longhaul started", async () => {
  const folder = clone();
  const up = start(folder, ["up"]);
  await eventually("its worker polls", () => up.err().includes("worker polls"), 110_000);
  expect(up.err()).toContain("Everything is running");
  up.child.kill("SIGINT");
  const { code, err } = await up.ended;
  expect({ code, stack: /^ {4}at /m.test(err) }).toEqual({ code: 0, stack: false });
  const down = await start(folder, ["down"]).ended;
  expect(down.code).toBe(0);
  expect(down.err).toContain("Nothing started by longhaul was running.");
  const state = join(folder, ".longhaul", "state.json");
  if (existsSync(state)) expect(readFileSync(state, "utf8")).not.toContain('"worker"');
});
