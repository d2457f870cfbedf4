import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, onTestFinished, test } from "vitest";
import { emptyFolder, finished, longhaul } from "../support/commands/longhaul.ts";
import { createTestDatabase } from "../support/test-database.ts";

test("lists sessions with their status, newest first, as a table and as JSON", async () => {
  const first = await finished("say: One.");
  const second = await finished("say: Two.");
  // Other files start sessions meanwhile: by default only the newest 50 are shown.
  const { code, out } = await longhaul(["list", "--limit", "1000"]);
  expect(code).toBe(0);
  expect(out.indexOf(second)).toBeGreaterThanOrEqual(0);
  expect(out.indexOf(second)).toBeLessThan(out.indexOf(first));
  const { out: json } = await longhaul(["list", "--limit", "1000", "--json"]);
  const rows = JSON.parse(json) as { id: string; status: string }[];
  expect(rows.find(({ id }) => id === first)?.status).toBe("completed");
});

test("says that there are none", async () => {
  // In the database of all files a session of another one may be waiting.
  const empty = await createTestDatabase();
  onTestFinished(() => empty.drop());
  const none = await longhaul(["list", "--status", "waiting"], { environment: { DATABASE_URL: empty.url } });
  expect(none).toMatchObject({ code: 0, out: "" });
  expect(none.err).toContain("There are no sessions with status waiting.");
});

test("a shell completes commands, flags and ids", async () => {
  const id = await finished("say: One.", "--id", "completed-by-a-shell");
  const scripts = await Promise.all(["bash", "zsh", "fish"].map((shell) => longhaul(["completion", shell])));
  expect(scripts.map(({ code }) => code)).toEqual([0, 0, 0]);
  for (const { out } of scripts) expect(out).toContain("completion ids");
  const cwd = emptyFolder();
  writeFileSync(join(cwd, "completion"), scripts[0]?.out ?? "");
  const asked = async (...words: string[]) => {
    const script = `source ./completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _longhaul; echo "\${COMPREPLY[*]}"`;
    const { stdout } = await promisify(execFile)("bash", ["-c", script, "bash", "longhaul", ...words], {
      cwd,
      env: { PATH: process.env["PATH"], ...inject("commandsEnvironment") },
    });
    return stdout.trim();
  };
  expect(await asked("stat")).toBe("status");
  expect(await asked("status", "completed-by")).toBe(id);
  expect(await asked("run", "--max-s")).toBe("--max-steps");
  expect(await asked("completion", "f")).toBe("fish");
  expect((await longhaul(["completion", "tcsh"])).code).toBe(2);
});
