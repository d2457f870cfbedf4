/** An MCP server whose tools change during a session. */
import type { McpServer } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { startMcpServer, type TestMcpServer, withServers } from "../support/mcp-server.ts";
import { untilWaiting } from "../support/questions.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const agent = useAgent();

test.each(["old", "new"] as const)(
  "%s servers: changed tools are announced, and used after a person's message",
  async (era) => {
    const names = new Set(["get", "old"]);
    const answer = (text: string) => ({ content: [{ type: "text" as const, text }] });
    const add = (server: McpServer, name: string) =>
      server.registerTool(name, { description: `Does ${name}.` }, () => answer(`did ${name}`));
    const server: TestMcpServer = await startMcpServer((made) => {
      const tools = [...names].filter((name) => name !== "get").map((name) => add(made, name));
      made.registerTool("get", { description: "Changes the others." }, () => {
        if (names.delete("old")) {
          for (const tool of tools) tool.remove();
          names.add("new");
          add(made, "new");
          server.toolsChanged();
        }
        return answer("changed");
      });
    }, era);
    const session = await agent.start(
      scriptedModel()
        .calls("rows__get", {})
        .calls("rows__get", {})
        .calls("bash", { command: "true" })
        .calls("rows__old", {})
        .calls("ask_user", { question: "Go on?" })
        .calls("rows__new", {})
        .calls("rows__old", {})
        .says("Done."),
      { config: withServers({ rows: { url: server.url } }) },
    );
    const changed = await session.until("mcp:changed");
    expect(changed.data).toEqual({ server: "rows", added: ["new"], removed: ["old"] });
    await untilWaiting(agent.database.store, session);
    await session.handle.signal("guidance", { id: "m1", text: "go on" });
    expect(await session.result()).toMatchObject({ status: "completed" });
    const offered = session.model.log.map(({ request }) =>
      (request?.tools ?? []).map(({ name }) => name).filter((name) => name.startsWith("rows__")),
    );
    const before = ["rows__get", "rows__old"];
    const after = ["rows__get", "rows__new"];
    expect(offered).toEqual([before, before, before, before, before, after, after, after]);
    const texts = await resultTexts(agent.database.store, session.id);
    expect(texts[3]).toMatch(/^The server rows does not offer old any more: .* the call was not made\.$/);
    expect(texts[5]).toBe("did new");
    expect(texts[6]).toMatch(/^The server rows does not offer the tool "rows__old"/);
    expect((await session.events()).filter(({ type }) => type === "mcp:changed")).toHaveLength(1);
  },
);
