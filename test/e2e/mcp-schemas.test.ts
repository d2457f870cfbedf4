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
