import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { clientArgs } from "../../support/program.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

/** Nothing listens on port 1. */
const nowhere = { DATABASE_URL: "postgres://someone:hunter2@127.0.0.1:1/x", TEMPORAL_ADDRESS: "127.0.0.1:1" };
const folder = emptyFolder(afterAll);

interface Outcome {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the program as a person's shell would, in its own environment. */
function longhaul(
  args: readonly string[],
  environment: Record<string, string> = {},
  input = "",
): Promise<Outcome> {
  const child = spawn(process.execPath, clientArgs(args), {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, LONGHAUL_NO_SETUP: "1", ...nowhere, ...environment },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (piece: Buffer) => (out += piece));
  child.stderr.on("data", (piece: Buffer) => (err += piece));
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
  });
}

describe("the command line", { timeout: 60_000 }, () => {
  it("exits with 2 for wrong usage, suggests the right one, and starts nothing", async () => {
    const [verb, steps, id, empty, none, which, bare] = await Promise.all([
      longhaul(["staus", "x"]),
      longhaul(["run", "--max-steps", "none", "task"]),
      longhaul(["start", "--id", "../x", "task"]),
      longhaul(["run", "-"], {}, "  \n"),
      longhaul(["start"]),
      longhaul(["watch"]),
      longhaul([]),
    ]);
    expect(which).toMatchObject({ code: 2, out: "" });
    expect(which.err).toMatch(/which session\? .*@last/);
    expect(bare).toMatchObject({ code: 2, out: "" });
    expect(bare.err.trimEnd().split("\n").slice(-5).join("\n")).toMatch(
      /^Begin:[^]* run "Write [^]* run --help$/,
    );
    expect(verb).toMatchObject({ code: 2, out: "" });
    expect(verb.err).toContain("Did you mean status?");
    expect(steps).toMatchObject({ code: 2, out: "" });
    expect(steps.err).toContain("Expected a positive integer up to");
    for (const { code, out, err } of [id, empty, none]) {
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).not.toMatch(/^$|\n\s+at /);
    }
  });

  it("refuses an invalid address with 2, not printing it, and its help has no empty defaults", async () => {
    const [address, ...helps] = await Promise.all([
      longhaul(["list"], { DATABASE_URL: "hunter2" }),
      longhaul(["--help"]),
      longhaul(["run", "--help"]),
      longhaul(["say", "--help"]),
    ]);
    expect(address).toMatchObject({ code: 2, out: "" });
    expect(address.err).toContain("DATABASE_URL cannot be used: it is no address of a Postgres server.");
    expect(address.err).not.toContain("hunter2");
    for (const { code, out } of helps) {
      expect(code).toBe(0);
      expect(out).not.toMatch(/<>|\(default: \[\]\)/);
    }
  });

  it("prints no escape sequence in an error, whatever it quotes", async () => {
    const { err } = await longhaul(["start", "--config", "x\u001b]52;c;eA==\u0007\u009b2Jy", "task"]);
    expect(err).toContain("There is no configuration file x2Jy");
    // oxlint-disable-next-line no-control-regex -- control characters are what this is about
    expect(err).not.toMatch(/[\u0007\u001b\u009b]/);
  });

  it(
    "exits with 2 for a wrong configuration, with file, line and the nearest key",
    { tags: ["U20"] },
    async () => {
      writeFileSync(join(folder, "wrong.yaml"), "model: openai/gpt-5.4\nlimts: {}\n");
      const outcome = await longhaul(["run", "--config", "wrong.yaml", "task"]);
      expect(outcome).toMatchObject({ code: 2, out: "" });
      expect(outcome.err).toContain("wrong.yaml:2:1: unknown key limts: did you mean limits?");
    },
  );

  it("exits with 2 for an unknown provider, with the lines to add", { tags: ["U21"] }, async () => {
    const outcome = await longhaul(["start", "--model", "acme/gpt-99", "task"]);
    expect(outcome).toMatchObject({ code: 2, out: "" });
    expect(outcome.err).toContain("baseUrl:");
  });

  it(
    "exits with 4 within 10 s if a service is missing, with a fix, no stack, no password",
    { tags: ["U7"] },
    async () => {
      const timed = async (...words: string[]) => {
        const began = performance.now();
        await longhaul(words);
        return performance.now() - began;
      };
      // A busy machine takes longer to start any program: only the time on top of that counts.
      const [statusMs, helpMs] = await Promise.all([timed("status", "some-session"), timed("--help")]);
      expect(statusMs - helpMs).toBeLessThan(10_000);
      const [status, list, start] = await Promise.all([
        longhaul(["status", "some-session", "--json"]),
        longhaul(["list"]),
        longhaul(["start", "task"]),
      ]);
      for (const outcome of [status, list, start]) {
        expect(outcome).toMatchObject({ code: 4, out: "" });
        expect(outcome.err).toContain("Postgres does not answer at postgres://127.0.0.1:1/x");
        expect(outcome.err).toContain("DATABASE_URL");
        expect(outcome.err).not.toMatch(/hunter2|\n\s+at /);
      }
    },
  );

  it("explains a removed current folder and a full standard output, without a stack", async () => {
    const [program, ...words] = [process.execPath, ...clientArgs(["--help"])].map((word) => `'${word}'`);
    const script = (line: string) => spawnSync("bash", ["-c", line], { encoding: "utf8", cwd: folder });
    const full = script(`${program} ${words.join(" ")} > /dev/full`);
    expect(full.status).toBe(5);
    expect(full.stderr).toBe(
      "longhaul: Standard output cannot be written: no space is left on its file system.\n",
    );
    const removed = script(`mkdir gone && cd gone && rmdir ../gone && ${program} ${words.join(" ")}`);
    expect(removed.status).toBe(0);
    const started = script(
      `mkdir gone && cd gone && rmdir ../gone && ${program} ${words.slice(0, -1).join(" ")} start task`,
    );
    expect(started.stderr).toContain("The current folder was removed.");
    expect(started.stderr).not.toMatch(/\n\s+at /);
    expect(started.status).toBe(2);
  });

  it("exits with 2 if a worker's settings are wrong, with the reason", async () => {
    const [policy, environment] = await Promise.all([
      longhaul(["worker"], { LONGHAUL_POLICY: join(folder, "none.yaml") }),
      longhaul(["worker"], { LONGHAUL_HEARTBEAT_MS: "often" }),
    ]);
    expect(policy).toMatchObject({ code: 2, out: "" });
    expect(policy.err).toContain("no such file");
    expect(environment).toMatchObject({ code: 2, out: "" });
    expect(environment.err).toContain("LONGHAUL_HEARTBEAT_MS");
  });

  it("exits with 4 if a named model's key is missing", async () => {
    const outcome = await longhaul(["start", "--model", "openai/gpt-5.4", "task"], { LONGHAUL_NO_SETUP: "" });
    expect(outcome).toMatchObject({ code: 4, out: "" });
    expect(outcome.err).toContain("OPENAI_API_KEY");
  });

  it("writes no escape sequence into a pipe, and its help to stdout", { tags: ["U19"] }, async () => {
    const outcome = await longhaul(["--help"]);
    expect(outcome.code).toBe(0);
    expect(outcome.out).toContain("Exit codes: 0 completed");
    expect(outcome.out + outcome.err).not.toContain("\u001b");
  });
});
