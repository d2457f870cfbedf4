/** Settings of the client that protect something: a typo must not switch them off. */
import { expect, it, onTestFinished, vi } from "vitest";
import { clientUser, serveTokens } from "../../../client/config/config.ts";
import { workerOrigin } from "../../../client/setup/worker-process.ts";
import { checkSettings, idsOnly } from "../../../client/setup/services.ts";
import { remember } from "../../../client/setup/state.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

it.each(["id", "IDS", "none"])("LONGHAUL_HISTORY=%s is refused before anything is sent", (value) => {
  vi.stubEnv("LONGHAUL_HISTORY", value);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(() => checkSettings()).toThrow(value);
  expect(() => idsOnly()).toThrow(value);
});

it.each([
  ["ids", true],
  ["full", false],
  ["", false],
])("LONGHAUL_HISTORY=%s: ids alone: %s", (value, expected) => {
  vi.stubEnv("LONGHAUL_HISTORY", value);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(idsOnly(emptyFolder())).toBe(expected);
});

it.each([
  ["", "ids", true],
  ["", "full", false],
  ["full", "ids", false],
])("LONGHAUL_HISTORY=%s beside a local worker with %s: ids alone: %s", (value, ofWorker, expected) => {
  const home = emptyFolder();
  const origin = workerOrigin({ LONGHAUL_HISTORY: ofWorker });
  remember(home, "worker", { pid: 4_000_000, born: "1", address: "", log: "log", ...origin });
  vi.stubEnv("LONGHAUL_HISTORY", value);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(idsOnly(home)).toBe(expected);
});

it("a LONGHAUL_USER that would read as another name, or as nobody, is refused before sending", () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const name of ["\u001b[31m", "al\nice", "a".repeat(101), "al\u0007ice"]) {
    vi.stubEnv("LONGHAUL_USER", name);
    expect(() => checkSettings()).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringContaining("LONGHAUL_USER") as string }),
    );
  }
  for (const name of ["", " ", "alice", "Zoë Müller"]) {
    vi.stubEnv("LONGHAUL_USER", name);
    expect(clientUser()).toBe(name.trim() || undefined);
  }
});

it("a token of two people is refused: one would act as the other", () => {
  const [a, b] = ["a".repeat(16), "b".repeat(16)];
  const tokensOf = (text: string) => [...serveTokens({ LONGHAUL_SERVE_TOKENS: text })];
  expect(tokensOf(`alice=${a},bob=${b}`)).toEqual([
    [a, "alice"],
    [b, "bob"],
  ]);
  expect(() => tokensOf(`alice=${a},bob=${a}`)).toThrow(/no token twice|names and tokens/);
  expect(() => tokensOf(`${"a".repeat(101)}=${a}`)).toThrow(/names and tokens/);
});
