import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import {
  childEnvironment,
  type Purpose,
  isAlive,
  launch,
  run,
  makePrivate,
} from "../../../client/setup/processes.ts";
import { until } from "../../../temporal/patience.ts";
import { sources } from "../../architecture/sources.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

let folder: string;
beforeEach(() => {
  folder = emptyFolder();
});

const ours = {
  PATH: "/bin",
  HOME: "/somewhere",
  LC_ALL: "C",
  HTTPS_PROXY: "http://me:secret@proxy:1",
  OPENAI_API_KEY: "sk-1",
  DATABASE_URL: "postgres://a:b@c/d",
  TEMPORAL_API_KEY: "key",
  AWS_SECRET_ACCESS_KEY: "aws",
  GITHUB_TOKEN: "ghp",
  NODE_AUTH_TOKEN: "npm",
  GOPROXY: "https://example.org/go",
  LONGHAUL_REHEARSAL_DELAY_MS: "1",
};
const common = ["PATH", "HOME", "LC_ALL"];

describe("the environment of child processes", () => {
  it.each<[Purpose, string[]]>([
    ["service", []],
    ["installer", ["HTTPS_PROXY", "GOPROXY"]],
    ["dockerd", ["HTTPS_PROXY"]],
    ["rehearsal", ["LONGHAUL_REHEARSAL_DELAY_MS"]],
    [
      "worker",
      ["HTTPS_PROXY", "OPENAI_API_KEY", "DATABASE_URL", "TEMPORAL_API_KEY", "LONGHAUL_REHEARSAL_DELAY_MS"],
    ],
  ])("gives a %s only the variables that it needs", (purpose, more) => {
    expect(Object.keys(childEnvironment(purpose, ours)).sort()).toEqual([...common, ...more].sort());
  });

  it("contains no key by default", async () => {
    process.env["OPENAI_API_KEY"] = "sk-very-secret";
    try {
      const log = join(folder, "log");
      const mark = await launch({ command: "env", args: [], log });
      await until(async () => !(await isAlive(mark)), 10_000);
      const { stdout } = await run("env", []);
      for (const text of [readFileSync(log, "utf8"), stdout]) {
        expect(text).toContain("PATH=");
        expect(text).not.toContain("very-secret");
      }
    } finally {
      delete process.env["OPENAI_API_KEY"];
    }
  });

  it("contains for the worker every variable that the worker reads", () => {
    const [config] = sources(/^worker\/config\.ts$/);
    const names = (config?.text.match(/^ {2}[A-Z]+_[A-Z_]+(?=:)/gm) ?? []).map((name) => name.trim());
    expect(names.length).toBeGreaterThan(20);
    const set = Object.fromEntries(names.map((name) => [name, "x"]));
    expect(childEnvironment("worker", set)).toEqual(set);
  });

  it("has no setting of the client alone, with which a new worker would start", () => {
    const names = ["USER", "CONFIG", "DEBUG", "NO_SETUP", "NO_INSTALL", "CODEC_TOKEN", "SERVE_TOKENS"];
    const set = Object.fromEntries(names.map((name) => [`LONGHAUL_${name}`, "1"]));
    expect(childEnvironment("worker", set)).toEqual({});
  });

  it("is never our whole environment", () => {
    const whole = sources(/^worker\/local\/(?!rehearsal\/flashcards\/).*\.ts$/).filter(({ text }) =>
      /\.\.\.process\.env|env: process\.env/.test(text),
    );
    expect(whole.map(({ path }) => path)).toEqual([]);
  });
});

describe("the folder of our data", () => {
  it("is closed to others, including files in it that were open", () => {
    const home = join(folder, "home");
    mkdirSync(join(home, "logs"), { recursive: true, mode: 0o755 });
    for (const path of ["temporal.db", "logs/worker.log"])
      writeFileSync(join(home, path), "x", { mode: 0o644 });
    makePrivate(home);
    const modes = ["", "logs", "temporal.db", "logs/worker.log"].map(
      (path) => statSync(join(home, path)).mode & 0o777,
    );
    expect(modes).toEqual([0o700, 0o700, 0o600, 0o600]);
  });

  it("gets only private files from programs started with it", async () => {
    const log = join(folder, "logs", "x.log");
    const before = process.umask();
    const mark = await launch({ command: "sh", args: ["-c", `echo made > ${join(folder, "made")}`], log });
    await until(async () => !(await isAlive(mark)), 10_000);
    expect(statSync(join(folder, "made")).mode & 0o777).toBe(0o600);
    expect(statSync(log).mode & 0o777).toBe(0o600);
    expect(process.umask()).toBe(before);
  });
});
