/** Tools of MCP servers whose schemas providers refuse: they refuse the whole request for one. */
import { fromJsonSchema } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { startMcpServer, withServers } from "../support/mcp-server.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();

/** Takes whatever comes, and says what came. */
const anything = { getValidator: () => (data: unknown) => ({ valid: true, data, errorMessage: undefined }) };

test.each(["new", "old"] as const)(
  "odd ones are used, and one that is refused is left out, in the %s era",
  async (era) => {
    const { url } = await startMcpServer((server) => {
      const odd = (name: string, schema: object) =>
        server.registerTool(
          name,
          { description: "Is odd.", inputSchema: fromJsonSchema<object>(schema, anything as never) },
          (given) => ({ content: [{ type: "text" as const, text: `${name} ${JSON.stringify(given)}` }] }),
        );
      odd("calls", {
        type: "object",
        properties: { "StartTime<": { type: "string" }, ids: { type: "array" } },
      });
      odd("either", {
        type: "object",
        anyOf: [
          { properties: { id: { type: "string" } }, required: ["id"] },
          { properties: { name: { type: "string" } }, required: ["name"] },
        ],
      });
      odd("no_regex", { type: "object", properties: { id: { type: "string", pattern: "(" } } });
    }, era);
    const session = await agent.start(
      scriptedModel()
        .replies(({ tools }) => {
          const { schema } = tools.find(({ name }) => name === "odd__calls") ?? {};
          const [startTime = ""] = Object.keys((schema as { properties: object }).properties);
          return { parts: [call("odd__calls", { [startTime]: "today", ids: ["a"] })] };
        })
        .calls("odd__either", { name: "b" })
        .says("Done."),
      { config: withServers({ odd: { url } }) },
    );
    expect(await session.result()).toMatchObject({ status: "completed", steps: 3 });
    expect(await resultTexts(agent.database.store, session.id)).toEqual([
      'calls {"StartTime<":"today","ids":["a"]}',
      'either {"name":"b"}',
    ]);
    const answers = await session.dataOf("llm:response");
    expect(answers.map((answer) => (answer as { refusedTools?: string[] }).refusedTools)).toEqual([
      ["odd__no_regex"],
      undefined,
      undefined,
    ]);
    expect(await session.dataOf("llm:error")).toEqual([]);
  },
);

const PROGRAM = `
import json, sys

TOOLS = [
    {"name": "either", "inputSchema": {"anyOf": [{"properties": {"id": {"type": "string"}}}, {"required": ["name"]}]}},
    {"name": "bare", "title": 7, "annotations": {"readOnlyHint": "yes", "title": 8}},
    {"name": "listed", "inputSchema": {"type": "object", "properties": [], "required": "id"}, "outputSchema": {"type": "string"}},
    {"name": "bare", "description": "A second one of this name."},
    {"description": "Has no name.", "inputSchema": {"type": "object"}},
    "no tool",
]
for line in sys.stdin:
    request = json.loads(line)
    if request.get("id") is None:
        continue
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    else:
        said = params.get("name") + json.dumps(params.get("arguments"))
        result = {"content": [{"type": "text", "text": said}], "structuredContent": {"not": "a string"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
`;

test("a server whose list is not as the protocol says is used as far as it can be", async () => {
  const session = await agent.start(
    scriptedModel()
      .answers(call("odd__either", { id: "a" }), call("odd__bare", {}), call("odd__listed", { any: 1 }))
      .says("Done."),
    { config: withServers({ odd: { command: "python3", args: ["-c", PROGRAM] } }) },
  );
  expect(await session.result()).toMatchObject({ status: "completed" });
  expect(await session.dataOf("mcp:connected")).toMatchObject([{ server: "odd", tools: 3 }]);
  const texts = await resultTexts(agent.database.store, session.id);
  expect(texts.map((text) => text.split("\n")[0])).toEqual([
    'either{"id": "a"}',
    "bare{}",
    'listed{"any": 1}',
  ]);
});
