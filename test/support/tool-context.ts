import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { cutPage } from "../../activities/text/cut.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { invokeTool, type InvokedTool, type InvokeOptions } from "../../activities/tools/invoke.ts";
import { defaultLimits } from "../../activities/config/run-policy.ts";
import { toolRegistry } from "../../activities/tools/index.ts";
import type { ToolContext } from "../../activities/tools/tool.ts";
import type { HistorySearch, SessionMemory } from "../../activities/contract/tools.ts";
import { createFakeSandbox, type FakeSandbox } from "./fake-sandbox.ts";
import { perTest } from "./per-file.ts";

/** One for each test of a file. */
export function useFakeSandbox(): FakeSandbox {
  return perTest(createFakeSandbox, (sandbox) => sandbox.dispose());
}

/** Writes a file, with its folders, without the sandbox. */
export async function putFile(
  { root }: FakeSandbox,
  name: string,
  content: string | Uint8Array,
): Promise<void> {
  const at = path.join(root, name);
  await mkdir(path.dirname(at), { recursive: true });
  await writeFile(at, content);
}

/** A session's memory in a map: whole outputs, rows and blobs as the tests set them. */
export function createFakeMemory(
  outputs: ReadonlyMap<string, string> = new Map(),
  rows: HistorySearch["hits"] = [],
): SessionMemory & { readonly blobs: Map<string, Uint8Array> } {
  const blobs = new Map<string, Uint8Array>();
  return {
    blobs,
    readOutput: async (handle, offset, limit) => {
      const whole = outputs.get(handle);
      return whole === undefined ? undefined : { ...cutPage(whole, offset, limit), total: whole.length };
    },
    search: async (terms, limit) => ({
      hits: rows.filter((row) => terms.every((word) => row.excerpt.includes(word))).slice(0, limit),
      skippedOutputs: 0,
    }),
    saveBlob: async (bytes, mediaType) => {
      const sha = createHash("sha256").update(bytes).digest("hex");
      blobs.set(sha, bytes);
      return { type: "file", mediaType, data: `@blob:${sha}` };
    },
  };
}

let calls = 0;

/** Calls a tool in a sandbox as an activity would, each call with its own key. */
export async function callTool(
  sandbox: Sandbox,
  name: string,
  input: unknown,
  overrides: Partial<ToolContext> = {},
  options: InvokeOptions = {},
): Promise<InvokedTool> {
  calls += 1;
  const context: ToolContext = {
    callKey: `s${calls}c0`,
    resumed: false,
    sandbox: async () => sandbox,
    limits: defaultLimits(name),
    signal: new AbortController().signal,
    memory: createFakeMemory(),
    maskWindow: (text, from, to) => text.slice(from, to),
    onProgress: () => {},
    ...overrides,
  };
  return invokeTool(toolRegistry, { name, input }, context, options);
}
