import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { eventually } from "../support/eventually.ts";
import { emptyFolder, longhaul, starting } from "../support/commands/longhaul.ts";
import { startLoginServer } from "../support/login-server.ts";
import { mcpProgram } from "../support/mcp-programs.ts";
import { startMcpServer } from "../support/mcp-server.ts";

test(
  "mcp lists the servers and tests one of them; without a required one a run ends with 4",
  { tags: ["M10"] },
  async () => {
    const rows = await startMcpServer((server) => {
      server.registerTool(
        "get_row",
        { description: "Gets a row.", inputSchema: z.object({ id: z.string() }) },
        () => ({ content: [] }),
      );
      server.registerTool(
        "drop_row",
        { description: "Drops it.", annotations: { destructiveHint: true } },
        () => ({
          content: [],
        }),
      );
    });
    const cwd = emptyFolder();
    const write = (servers: object) =>
      writeFileSync(
        join(cwd, "mine.yaml"),
        JSON.stringify({ mcpServers: servers, sandbox: { network: "none" } }),
      );
    const header = { "X-Key": "${LONGHAUL_MCP_ROWS_KEY}" };
    write({ rows: { url: rows.url, headers: header, readOnly: ["get_*"] }, box: mcpProgram });
    const flags = ["--config", "mine.yaml"];
    const environment = {
      LONGHAUL_MCP_ROWS_KEY: "the-key-of-rows",
      LONGHAUL_MCP_ROWS_TOKEN: "the-token-of-rows",
    };
    const list = await longhaul(["mcp", "list", ...flags], { cwd, environment });
    expect(list).toMatchObject({ code: 0, err: "" });
    expect(list.out).toMatch(
      /✓ rows {2}2 tools, \d+ tokens of descriptions; over HTTP, revision 2026-07-28\n {2}box {2}a program/,
    );
    expect(rows.headers()).toMatchObject({
      "x-key": "the-key-of-rows",
      authorization: "Bearer the-token-of-rows",
    });
    const tested = await longhaul(["mcp", "test", "rows", "--json", ...flags], { cwd, environment });
    expect(JSON.parse(tested.out)).toMatchObject([
      {
        server: "rows",
        tools: [
          { name: "rows__drop_row", readOnly: false, destructive: true },
          { name: "rows__get_row", readOnly: true, destructive: false },
        ],
      },
    ]);
    const tried = await longhaul(["mcp", "test", "box", ...flags], { cwd });
    expect(tried.out).toMatch(/✓ box {2}3 tools, .*in the sandbox, revision 2025-06-18\n {2}box__die /);
    expect(tried.code).toBe(0);
    const lacking = await longhaul(["mcp", "test", "rows", ...flags], { cwd });
    expect(lacking).toMatchObject({
      code: 4,
      out: expect.stringContaining("LONGHAUL_MCP_ROWS_KEY is not set"),
    });
    expect((await longhaul(["mcp", "test", "other", ...flags], { cwd })).code).toBe(2);

    write({ gone: { url: "http://127.0.0.1:2/mcp", required: true } });
    const run = await longhaul(["run", ...flags, "say: Never."], { cwd });
    expect(run).toMatchObject({ code: 4, out: "" });
    expect(run.err).toContain("MCP server gone");
  },
);

test("mcp login prints an address and completes with the browser's redirect, and logout ends it", async () => {
  const rows = await startMcpServer((server) => {
    server.registerTool("get", { description: "Gets a row." }, () => ({ content: [] }));
  });
  const guarded = await startLoginServer(rows.url);
  const cwd = emptyFolder();
  const servers = { rows: { url: guarded.url, auth: "oauth" } };
  writeFileSync(join(cwd, "mine.yaml"), JSON.stringify({ mcpServers: servers }));
  const flags = ["rows", "--config", "mine.yaml"];
  const environment = { LONGHAUL_CREDENTIALS_KEY: "k".repeat(32) };
  const login = starting(["mcp", "login", ...flags], { cwd, environment });
  const address = await eventually(
    "the address",
    () => /http:\/\/\S+\/authorize\S+/.exec(login.err())?.[0],
    60_000,
  );
  expect((await fetch(address)).ok).toBe(true);
  expect(await login.ended).toMatchObject({ code: 0, err: expect.stringContaining("Logged in to rows.") });
  const after = await longhaul(["mcp", "test", ...flags], { cwd, environment });
  expect(after).toMatchObject({ code: 0, out: expect.stringContaining("rows__get") });
  const logout = await longhaul(["mcp", "logout", ...flags], { cwd });
  expect(logout).toMatchObject({ code: 0, err: expect.stringContaining("Logged out of rows") });
});
