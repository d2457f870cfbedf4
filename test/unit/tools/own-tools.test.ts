import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { callOwnTool, ownTool, parseOwnTools } from "../../../activities/tools/own/own-tools.ts";
import { defineTool, type ToolDefinition } from "../../../activities/tools/own/define-tool.ts";
import { LeaveRunning, type ToolContext } from "../../../activities/tools/tool.ts";
import { loadOwnTools } from "../../../worker/deps.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const base = { name: "mine", description: "Mine.", input: z.object({}), run: () => "done" };
const of = (more: object) => parseOwnTools([{ ...base, ...more }]);

describe("a list of own tools", () => {
  it("is kept as the model sees it", () => {
    const input = z.object({ title: z.string().describe("The title") });
    const { catalogue, maxTimeoutMs } = of({ input, readOnly: true, timeoutMs: 5_000 });
    expect(maxTimeoutMs).toBe(5_000);
    expect(catalogue.tools).toMatchObject([
      {
        name: "mine",
        hints: { readOnly: true },
        inputSchema: { type: "object", properties: { title: { description: "The title" } } },
      },
    ]);
  });

  it("is offered with schemas that providers take, and called by its own names", async () => {
    const input = z.object({ pair: z.tuple([z.string(), z.number()]), "from<": z.string() });
    const [entry] = of({ input }).catalogue.tools;
    if (entry === undefined) throw new Error("there is no tool");
    const tool = ownTool(entry);
    const { properties } = tool.inputSchema as { properties: Record<string, object> };
    expect(properties["pair"]).toMatchObject({ prefixItems: [{}, {}], items: {} });
    const [, from = ""] = Object.keys(properties);
    expect(from).toMatch(/^from__[0-9a-f]{8}$/);
    const own = (_name: string, given: object) => Promise.resolve({ text: JSON.stringify(given) });
    expect(await tool.run({ [from]: "today" }, { own } as unknown as ToolContext)).toEqual({
      text: '{"from<":"today"}',
    });
  });

  it.each([
    ["a name that is Longhaul's", { name: "bash" }, "the tool bash: Longhaul has a tool of this name"],
    ["an alias of one", { name: "execute_command" }, "Longhaul has a tool of this name"],
    ["the search's name", { name: "search_tools" }, "Longhaul has a tool of this name"],
    ["a server's kind of name", { name: "a__b" }, "the tool a__b: name: expected 1 to 64 letters"],
    ["a name with a space", { name: "a b" }, "the tool a b: name: expected 1 to 64 letters"],
    ["no schema", { input: {} }, "the tool mine: input: expected a schema of zod"],
    ["another kind of schema", { input: { safeParse: () => undefined } }, "take a schema of zod 4"],
    ["no object", { input: z.string() }, "input is not an object"],
    ["nothing to run", { run: "ls" }, "run: expected a function"],
    ["too long a time", { timeoutMs: 600_001 }, "timeoutMs"],
  ])("is refused with %s", (_what, more, why) => {
    expect(() => of(more)).toThrow(why);
  });

  it("is refused if two share a name, and where it is not a list", () => {
    expect(() => parseOwnTools([base, base])).toThrow("two tools are called mine");
    expect(() => parseOwnTools({})).toThrow("not a list");
    expect(() => parseOwnTools([null])).toThrow("tool 1 of the list");
  });

  it("that cannot be loaded prevents the worker's start, with the reason and a remedy", async () => {
    const folder = emptyFolder();
    const file = join(folder, "tools.mjs");
    await expect(loadOwnTools(file)).rejects.toMatchObject({ name: "ServiceMissing" });
    writeFileSync(file, "export default [{ name: 'bash' }];");
    await expect(loadOwnTools(file)).rejects.toThrow(/LONGHAUL_TOOLS=.*cannot be used.*the tool bash: /);
  });
});

const caller = { sessionId: "s", idempotencyKey: "s.e1s1c0" };

async function called(tool: Partial<ToolDefinition>, context: Partial<ToolContext> = {}, input = {}) {
  const made = parseOwnTools([defineTool({ ...base, ...tool })]).byName.get("mine");
  if (made === undefined) throw new Error("there is no tool");
  const whole = { signal: new AbortController().signal, resumed: false, callKey: "s1c0", ...context };
  return callOwnTool(made, caller, input, whole as ToolContext);
}

describe("a call of an own tool", () => {
  it("returns text, a reported failure, or a thrown failure", async () => {
    expect(await called({})).toEqual({ text: "done" });
    expect(await called({ run: () => ({ text: "no", isError: true }) })).toEqual({
      text: "no",
      isError: true,
    });
    const thrown = () => Promise.reject(new Error("away"));
    expect(await called({ run: thrown })).toEqual({ text: "mine failed: away", isError: true });
    expect(await called({ run: () => 3 as never })).toMatchObject({ isError: true });
    expect(await called({ input: z.object({ a: z.string() }) })).toMatchObject({ isError: true });
  });

  it("that may have begun runs again only if it is read-only", async () => {
    expect(await called({}, { resumed: true })).toMatchObject({ unknown: true });
    expect(await called({ readOnly: true }, { resumed: true })).toEqual({ text: "done" });
  });

  it("that exceeds its timeout is stopped; its outcome is unknown, unless it is read-only", async () => {
    const listens: ToolDefinition["run"] = (_input, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("stopped"))));
    const late = await called({ run: listens, timeoutMs: 20 });
    expect(late).toMatchObject({ unknown: true, text: expect.stringContaining("longer than 0.02 s") });
    expect(await called({ run: listens, timeoutMs: 20, readOnly: true })).toMatchObject({ isError: true });
  });

  it("is stopped by a person, and abandoned by a worker that ends, even if it ignores the signal", async () => {
    const stop = new AbortController();
    const deaf = () => new Promise<string>(() => undefined);
    const stopping = called({ run: deaf }, { signal: stop.signal });
    stop.abort(new Error("a person"));
    expect(await stopping).toMatchObject({ interrupted: true });
    const leave = new AbortController();
    const leaving = called({ run: deaf }, { signal: leave.signal });
    leave.abort(new LeaveRunning());
    await expect(leaving).rejects.toThrow(LeaveRunning);
  });
});
