/** A worker that protects everyone who uses it is not replaced by one that does not. */
import { beforeEach, expect, test } from "vitest";
import { workerOrigin, ensureWorker } from "../../../client/setup/worker-process.ts";
import {
  lostProtections,
  SettingMissing,
  readState,
  remember,
  type RunningService,
} from "../../../client/setup/state.ts";
import { findServices } from "../../../client/setup/services.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

let home: string;
beforeEach(() => {
  home = emptyFolder();
});

const startedWith = (environment: Record<string, string>): RunningService => ({
  pid: 4_000_000,
  born: "1",
  address: "",
  log: "log",
  ...workerOrigin(environment),
});

test.each([
  ["LONGHAUL_POLICY", "policy.yaml"],
  ["LONGHAUL_CODEC_KEYS", "a:key"],
  ["LONGHAUL_HISTORY", "ids"],
  ["LONGHAUL_OLD_RUNC", "refuse"],
  ["LONGHAUL_ALLOW_CONTAINERS", "0"],
])("a shell without %s replaces no worker that has it, and is told both ways on", async (name, value) => {
  const worker = startedWith({ [name]: value });
  remember(home, "worker", worker);
  const starting = ensureWorker({ home, services: findServices(home, "free"), say: () => undefined });
  await expect(starting).rejects.toThrow(SettingMissing);
  await expect(starting).rejects.toThrow(`lack the protection of ${name}, which`);
  await expect(starting).rejects.toThrow(`Set ${name} in this shell`);
  await expect(starting).rejects.toThrow("longhaul down");
  expect(readState(home).services.worker).toEqual(worker);
});

test("another value that protects is a normal change, and one that does not is not", () => {
  const worker = startedWith({ LONGHAUL_POLICY: "one.yaml", LONGHAUL_HISTORY: "ids" });
  const lost = (environment: Record<string, string>) => lostProtections(worker, environment);
  expect(lost({ LONGHAUL_POLICY: "two.yaml", LONGHAUL_HISTORY: "ids" })).toEqual([]);
  expect(lost({ LONGHAUL_POLICY: "", LONGHAUL_HISTORY: "full" })).toEqual([
    "LONGHAUL_POLICY",
    "LONGHAUL_HISTORY",
  ]);
});

test("a worker without protections, or none, has none to lose", () => {
  const worker = startedWith({ LONGHAUL_HISTORY: "full", LONGHAUL_OLD_RUNC: "warn", OPENAI_API_KEY: "k" });
  expect(lostProtections(worker, {})).toEqual([]);
  expect(lostProtections(undefined, {})).toEqual([]);
});
