/** A picture in the result of an MCP server that others wrote, from npm, as four wires bring it to the model. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { workerProgramSchema } from "../../activities/config/mcp-settings.ts";
import { createMcpAccess } from "../../activities/mcp/access.ts";
import { createMcp } from "../../activities/mcp/load-mcp.ts";
import { startAgent } from "../support/agent-harness.ts";
import { withServers } from "../support/mcp-server.ts";
import { perFile } from "../support/per-file.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import type { WireItem } from "../support/model-server/wire.ts";

const INSTALL_MS = 280_000;
const folder = mkdtempSync(join(tmpdir(), "longhaul-everything-"));
let notInstalled: string | undefined;

beforeAll(async () => {
  const server = "@modelcontextprotocol/server-everything@2026.8.31";
  const install = ["install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", server];
  await promisify(execFile)("npm", install, { timeout: INSTALL_MS }).catch((error: unknown) => {
    notInstalled = String(error);
  });
}, INSTALL_MS + 10_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const everything = workerProgramSchema.parse({
  command: join(folder, "node_modules/.bin/mcp-server-everything"),
});

const agent = perFile(() =>
  startAgent({
    mcp: createMcp({ ...createMcpAccess({ PATH: process.env["PATH"] }), programs: { everything } }),
  }),
);

const picturesOf = (items: readonly WireItem[]) =>
  items.flatMap((item) =>
    item.type === "message" || item.type === "result"
      ? item.parts.filter(({ type }) => type === "image")
      : [],
  );

/** Google's paths begin otherwise, and the model's own provider names the variable with them. */
const google = {
  provider: { name: "google", baseUrlEnv: "GEMINI_BASE_URL", keyEnv: "OPENAI_API_KEY" },
} as const;

test.for(["responses", "chat", "messages", "gemini"] as const)(
  "reaches the model by the %s wire",
  { timeout: 120_000 },
  async (api, { skip }) => {
    if (notInstalled !== undefined) return skip(`npm cannot install the server: ${notInstalled}`);
    const session = await agent.start(
      scriptedModel()
        .replies(({ tools }) => {
          const image = tools.find(({ name }) => /^everything__.*tiny.?image/i.test(name));
          return { parts: [call(image?.name ?? "no image tool", {})] };
        })
        .says("I have seen it."),
      {
        config: withServers(
          { everything: { where: "worker", startTimeout: 60_000, expose: "always" } },
          { api, input: ["text", "image"], ...(api === "gemini" ? google : {}) },
        ),
      },
    );
    const result = await session.result();
    const failed = (await session.events()).filter(({ type }) => type === "mcp:failed");
    expect(failed.map(({ data }) => data)).toEqual([]);
    expect(result).toMatchObject({ status: "completed", result: "I have seen it." });
    const [before, after] = session.model.requests;
    expect(picturesOf(before?.items ?? [])).toEqual([]);
    expect(picturesOf(after?.items ?? [])).toEqual([
      { type: "image", mediaType: "image/png", bytes: expect.any(Number) },
    ]);
  },
);
