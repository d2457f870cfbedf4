/** The scripts that start the client, as a person or a build machine runs them. */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, test } from "vitest";
import { until } from "../../temporal/patience.ts";
import { emptyFolder } from "../support/empty-folder.ts";

const project = fileURLToPath(new URL("../..", import.meta.url));
const script = (name: string) => join(project, "scripts", name);

let folder: string;
beforeEach(() => {
  folder = emptyFolder();
});

function program(text: string): string {
  const file = join(folder, "program.ts");
  writeFileSync(file, text);
  return file;
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
}

function start(args: readonly string[], input = "") {
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (piece) => (out += String(piece)));
  child.stdin.end(input);
  const ended = new Promise<Ended>((resolve) => {
    child.on("close", (code, signal) => resolve({ code, signal, out }));
  });
  return { child, ended, out: () => out };
}

test("arguments, standard input and the exit code are passed through", async () => {
  const file = program(`
    let text: string = "";
    for await (const piece of process.stdin) text += piece;
    console.log(JSON.stringify([process.argv.slice(2), text]));
    process.exitCode = 3;
  `);
  const { ended } = start([script("node.mjs"), file, "two words", "--flag=ü"], "from stdin");
  const { code, out } = await ended;
  expect(JSON.parse(out)).toEqual([["two words", "--flag=ü"], "from stdin"]);
  expect(code).toBe(3);
});

test.each(["SIGINT", "SIGTERM"] as const)("%s reaches the command once", async (signal) => {
  const log = join(folder, "signals");
  writeFileSync(log, "");
  const file = program(`
    import { appendFileSync } from "node:fs";
    process.on("${signal}", () => {
      appendFileSync(${JSON.stringify(log)}, "x");
      setTimeout(() => process.exit(7), 200);
    });
    console.log("ready");
    setInterval(() => {}, 1000);
  `);
  const { child, ended, out } = start([script("node.mjs"), file]);
  expect(await until(() => out().includes("ready"), 20_000)).toBe(true);
  child.kill(signal);
  expect((await ended).code).toBe(7);
  expect(readFileSync(log, "utf8")).toBe("x");
});

test("a killed command has a signal as its exit status", async () => {
  const file = program(`process.kill(process.pid, "SIGKILL");`);
  expect((await start([script("node.mjs"), file]).ended).signal).toBe("SIGKILL");
});
