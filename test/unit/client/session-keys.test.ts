/** Keys that a session names: where definitions come from, and what is refused before anything is started. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { resolveConfig, type ConfigFlags } from "../../../client/config/config.ts";
import { workerKeys } from "../../../client/config/session-keys.ts";
import { ClientError } from "../../../client/console/errors.ts";
import { inContainer } from "../../../client/sessions/run-flags.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const VALUE = { OPENAI_API_KEY: "sk-test", LONGHAUL_KEY_NPM: "npm_0123456789" };
const DEFINED = "keys: {npm: {registry: npm, host: npm.acme.test}}\n";
let folder: string;
beforeEach(() => {
  folder = emptyFolder();
  mkdirSync(join(folder, "own", "longhaul"), { recursive: true });
});
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const own = (text: string) => file("own/longhaul/longhaul.yaml", text);
const withOwn = (more: object = {}) => ({ ...VALUE, XDG_CONFIG_HOME: join(folder, "own"), ...more });
const failure = (flags: ConfigFlags, environment: Record<string, string>) => {
  try {
    resolveConfig(flags, environment, folder);
  } catch (error) {
    if (error instanceof ClientError) return { exit: error.exitCode, text: `${error.message} ${error.fix}` };
    throw error;
  }
  return undefined;
};

describe("a session's keys", () => {
  it("are those of its settings and of its flags, by name", () => {
    own(`${DEFINED}sandbox: {keys: [npm]}\n`);
    const { run } = resolveConfig({ key: ["npm"] }, withOwn(), folder);
    expect(run.sandbox.keys).toEqual(["npm"]);
    expect(JSON.stringify(run)).not.toContain(VALUE.LONGHAUL_KEY_NPM);
    expect(JSON.stringify(run)).not.toContain("npm.acme.test");
  });

  it.each([
    ["a name that no key has", { key: ["nope"] }, {}, 2, /There is no key nope\. The worker's keys: npm/],
    ["no network", { key: ["npm"], network: "none" }, {}, 2, /sandbox\.network is none/],
    ["no value", { key: ["npm"] }, { LONGHAUL_KEY_NPM: "" }, 4, /LONGHAUL_KEY_NPM, which is not set/],
    [
      "a value that is too short",
      { key: ["npm"] },
      { LONGHAUL_KEY_NPM: "abc" },
      4,
      /LONGHAUL_KEY_NPM is shorter/,
    ],
  ] as const)("with %s start nothing", (_what, flags, environment, exit, text) => {
    own(DEFINED);
    const found = failure(flags, withOwn(environment));
    expect(found?.exit).toBe(exit);
    expect(found?.text).toMatch(text);
  });

  it("are refused with --container", () => {
    own(`${DEFINED}sandbox: {keys: [npm]}\n`);
    const { run } = resolveConfig({}, withOwn(), folder);
    expect(() => inContainer(run, { name: "box", folder: "/x" })).toThrow(
      /keys cannot be combined with --container/,
    );
    expect(inContainer(run, undefined)).toBe(run);
  });

  it.each([DEFINED, "sandbox: {keys: [npm]}\n"])(
    "and definitions never come from a file of the folder: %j",
    (text) => {
      own("sandbox: {network: bridge}\n");
      file("longhaul.yaml", text);
      const found = failure({}, withOwn());
      expect(found?.exit).toBe(2);
      expect(found?.text).toMatch(/longhaul\.yaml:1:\d+: (keys|sandbox\.keys)/);
    },
  );

  it("are not looked for if the worker is elsewhere, but for what can never be", () => {
    expect(failure({ key: ["npm"], setup: false }, VALUE)).toBeUndefined();
    expect(failure({ key: ["npm"], setup: false, network: "none" }, VALUE)?.exit).toBe(2);
  });
});

describe("a worker that is started here", () => {
  it("has the definitions of its policy alone", () => {
    own(DEFINED);
    const policy = file("policy.yaml", "keys: {pypi: {registry: pip, host: pypi.acme.test}}\n");
    expect(Object.keys(workerKeys(withOwn({ LONGHAUL_POLICY: policy }), folder))).toEqual(["pypi"]);
    expect(failure({ key: ["npm"] }, withOwn({ LONGHAUL_POLICY: policy }))?.text).toMatch(/only that counts/);
  });

  it("has those of the named file over those of the person's own", () => {
    own(`${DEFINED.trimEnd().slice(0, -1)}, api: {git: a.test, repositories: [a/b]}}\n`);
    const named = file("named.yaml", "keys: {npm: {registry: npm, host: other.test}}\n");
    const keys = workerKeys(withOwn({ LONGHAUL_CONFIG: named }), folder);
    expect(keys).toMatchObject({ npm: { host: "other.test" }, api: { git: "a.test" } });
  });

  it("does not have those of a file that only --config names, which is said", () => {
    const named = file("named.yaml", DEFINED);
    expect(failure({ config: named, key: ["npm"] }, VALUE)?.text).toMatch(/in the file of LONGHAUL_CONFIG/);
    expect(failure({ key: ["npm"] }, { ...VALUE, LONGHAUL_CONFIG: named })).toBeUndefined();
  });
});
