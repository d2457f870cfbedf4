import { expect, it } from "vitest";
import { z } from "zod";
import { toolSpecs } from "../../../activities/tools/index.ts";
import { toolIn } from "../../../activities/tools/session-tools.ts";
import { createToolRegistry, toolRegistry } from "../../../activities/tools/index.ts";
import { typedTool, type ToolContext } from "../../../activities/tools/tool.ts";

const echo = (name: string) =>
  typedTool({
    name,
    description: "Reads in /workspace.",
    input: z.looseObject({}),
    readOnly: true,
    about: () => "",
    run: (input) => Promise.resolve({ text: JSON.stringify(input), isError: false }),
  });
const said = async (name: string, input: object) =>
  JSON.parse((await toolIn(echo(name), "/app").run(input, {} as ToolContext)).text) as unknown;

it("maps paths of the folder to the workspace, and leaves others and texts unchanged", async () => {
  expect(await said("any", { path: "/app/a.txt", cwd: "/app", pattern: "/app/x" })).toEqual({
    path: "/workspace/a.txt",
    cwd: "/workspace",
    pattern: "/app/x",
  });
  expect(await said("any", { path: "/apple", command: "cat /app/a", content: "/app/a" })).toEqual({
    path: "/apple",
    command: "cat /app/a",
    content: "/app/a",
  });
  expect(await said("glob_files", { pattern: "/app/**/*.ts" })).toEqual({ pattern: "/workspace/**/*.ts" });
  const patch = "*** Begin Patch\n*** Update File: /app/a\n-/app/a\n*** Move to: b\n*** End Patch";
  expect(await said("apply_patch", { patch })).toEqual({
    patch: patch.replace("File: /app/a", "File: /workspace/a"),
  });
});

it("uses the folder's name for the model, in descriptions and in errors", async () => {
  const tools = createToolRegistry([...toolRegistry.values()].map((tool) => toolIn(tool, "/app")));
  const words = JSON.stringify(toolSpecs(tools));
  expect(words).toContain("relative to /app");
  expect(words).not.toContain("/workspace");
  const read = tools.get("read_file");
  await expect(read?.run({ path: "/etc/passwd" }, {} as ToolContext)).rejects.toThrow("/etc/passwd");
});
