/** MCP servers that others wrote, from the registries of this machine, all in one session. */
import { expect, test } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { mcpServersSchema } from "../../activities/config/mcp-settings.ts";
import { withMachine } from "../../client/registries/session-registries.ts";
import { useAgent } from "../support/agent-harness.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { resultTexts, transcriptOf } from "../support/stored.ts";

const agent = useAgent();

/** Installed when they are started. */
const SERVERS = {
  files: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "/workspace"] },
  everything: { command: "npx", args: ["-y", "@modelcontextprotocol/server-everything@2026.8.31"] },
  git: { command: "uvx", args: ["mcp-server-git==2026.10.19"] },
  time: { command: "uvx", args: ["mcp-server-time==2026.10.19", "--local-timezone", "UTC"] },
};

const configured = (config: RunConfig): RunConfig => ({
  ...config,
  sandbox: withMachine({ ...config.sandbox, network: "bridge", memory: "2g" }, process.env, process.cwd())
    .sandbox,
  mcpServers: mcpServersSchema.parse(
    Object.fromEntries(
      Object.entries(SERVERS).map(([name, server]) => [
        name,
        { ...server, startTimeout: 240_000, expose: "always" },
      ]),
    ),
  ),
});

test("four foreign servers serve one session", { timeout: 600_000 }, async ({ skip }) => {
  const session = await agent.start(
    scriptedModel()
      .calls("bash", {
        command:
          "git init -q repo && cd repo && git -c user.name=a -c user.email=a@b.example commit -q --allow-empty -m 'The first one'",
      })
      .calls("files__write_file", { path: "/workspace/note.txt", content: "written by a server" })
      .calls("bash", { command: "cat note.txt" })
      .calls("git__git_log", { repo_path: "/workspace/repo" })
      .calls("everything__echo", { message: "hello" })
      .replies(({ tools }) => {
        const image = tools.find(({ name }) => /^everything__.*tiny.?image/i.test(name));
        return { parts: [call(image?.name ?? "no image tool", {})] };
      })
      .calls("time__convert_time", { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" })
      .says("Done."),
    { config: configured },
  );
  const result = await session.result();
  const events = await session.events();
  const failed = events
    .filter(({ type }) => type === "mcp:failed")
    .map(({ data }) => data as { message: string });
  if (failed.length === Object.keys(SERVERS).length)
    return skip(`no server could be installed: ${failed.map(({ message }) => message).join("; ")}`);
  expect(failed).toEqual([]);
  expect(result).toMatchObject({ status: "completed" });
  const [, written, note, log, echo, image, time] = await resultTexts(agent.database.store, session.id);
  expect(written).toContain("Successfully wrote");
  expect(note).toBe("written by a server");
  expect(log).toContain("The first one");
  expect(echo).toContain("hello");
  expect(image).toContain("[image (image/png");
  expect(time).toContain("21:00");
  const rows = await transcriptOf(agent.database.store, session.id);
  expect(JSON.stringify(rows)).toContain("@blob:");
});
