import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REQUIREMENTS } from "../../client/setup/doctor.ts";
import { emptyFolder, longhaul } from "../support/commands/longhaul.ts";

test("lists what it found and where each setting comes from; secrets are masked", async () => {
  const { out, err } = await longhaul(["doctor", "--json"]);
  expect(err).toBe("");
  const { checks, settings } = JSON.parse(out) as {
    checks: { name: string; ok: boolean; found: string }[];
    settings: { name: string; value: string; source: string }[];
  };
  expect(checks.filter(({ ok }) => ok).length).toBeGreaterThan(2);
  expect(checks.find(({ name }) => name === "Model server")).toMatchObject({
    ok: true,
    found: expect.stringContaining("gpt-4o has a window of 128000 tokens"),
  });
  expect(settings.find(({ name }) => name === "model")).toMatchObject({
    value: "gpt-4o",
    source: "environment",
  });
  expect(out).not.toContain("sk-commands");
  // No GitHub App and no key that signs are configured here.
  expect(checks.map(({ name }) => name).slice(0, REQUIREMENTS.length - 2)).toEqual(REQUIREMENTS.slice(0, -2));
  const named = (name: string) => checks.find((check) => check.name === name)?.found;
  expect(named("tables")).toBe("in the schema public, of this version");
  expect(named("search attributes")).toBe("all there");
  // Nobody started it from this folder.
  expect(checks.find(({ name }) => name === "Worker")).toMatchObject({
    ok: true,
    found: expect.stringMatching(/^1 worker of the queue commands_\w+: /) as string,
  });
  expect(named("git folder")).toContain("can be written to");
});

test("a missing service is 4, a wrong configuration 2; each with a remedy", async () => {
  const missing = await longhaul(["doctor"], { environment: { TEMPORAL_ADDRESS: "127.0.0.1:1" } });
  expect(missing.code).toBe(4);
  expect(missing.out).toContain("127.0.0.1:1");
  expect(missing.out).toMatch(/! Worker +not looked for: Temporal is missing/);
  const unserved = await longhaul(["doctor"], { environment: { LONGHAUL_TASK_QUEUE: "nobodys" } });
  expect(unserved.out).toMatch(/✗ Worker +none serves the queue nobodys/);
  const wrong = await longhaul(["doctor", "--config", "missing.yaml"], { cwd: emptyFolder() });
  expect(wrong.code).toBe(2);
});

test("what could not be checked is named, and a folder for repositories that is read-only", async () => {
  const file = join(emptyFolder(), "file");
  writeFileSync(file, "");
  const { code, out } = await longhaul(["doctor"], {
    environment: { DATABASE_URL: "postgres://x@127.0.0.1:1/x", LONGHAUL_GIT_FOLDER: join(file, "git") },
  });
  expect(code).toBe(4);
  expect(out).toMatch(/! tables +not looked at: Postgres is missing/);
  expect(out).toMatch(/✗ git folder +cannot be written to: .*ENOTDIR/);
  expect(out).toContain("Set LONGHAUL_GIT_FOLDER");
});
