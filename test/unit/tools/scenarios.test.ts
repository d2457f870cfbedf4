import { readFileSync } from "node:fs";
import { mkdir, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { callTool, putFile, useFakeSandbox } from "../../support/tool-context.ts";

interface Scenario {
  readonly name: string;
  /** Labels of docs/requirements.md. */
  readonly tags?: string[];
  readonly files?: Readonly<Record<string, string | null>>;
  readonly call: unknown;
  readonly resumed?: boolean;
  readonly outcome?: string;
  readonly says?: readonly string[];
  readonly expected?: Readonly<Record<string, string>>;
}

const folder = path.join(import.meta.dirname, "../../scenarios/tools");

const sandbox = useFakeSandbox();

async function filesIn(root: string): Promise<Record<string, string>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files: Record<string, string> = {};
  for (const entry of entries.filter((file) => file.isFile())) {
    const at = path.join(entry.parentPath, entry.name);
    files[path.relative(root, at)] = await readFile(at, "utf8");
  }
  return files;
}

describe.each(["edit_file", "apply_patch"])("%s", (tool) => {
  const scenarios = parse(readFileSync(path.join(folder, `${tool}.yaml`), "utf8")) as Scenario[];

  for (const scenario of scenarios)
    it(scenario.name, { tags: scenario.tags ?? [] }, async () => {
      for (const [name, content] of Object.entries(scenario.files ?? {})) {
        if (content === null) await mkdir(path.join(sandbox.root, name), { recursive: true });
        else await putFile(sandbox, name, content);
      }
      const before = await filesIn(sandbox.root);

      const result = await callTool(sandbox, tool, scenario.call, { resumed: scenario.resumed === true });

      expect(result, result.text).toMatchObject({ outcome: scenario.outcome ?? "completed" });
      for (const words of scenario.says ?? []) expect(result.text).toContain(words);
      expect(await filesIn(sandbox.root)).toEqual(scenario.expected ?? before);
    });
});
