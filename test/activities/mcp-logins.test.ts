import { expect, test } from "vitest";
import { mcpServersSchema } from "../../activities/config/mcp-settings.ts";
import { createMcp } from "../../activities/mcp/load-mcp.ts";
import { loginToMcp, logoutOfMcp } from "../../client/setup/mcp-servers.ts";
import { startLoginServer } from "../support/login-server.ts";
import { startMcpServer } from "../support/mcp-server.ts";
import { wholeDatabase } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";

const database = useDatabase();
const SECRET = "a secret of at least thirty-two characters";

test("a login is kept sealed, refreshed once by however many need it, and ends with logout", async () => {
  const rows = await startMcpServer((server) => {
    server.registerTool("get", { description: "Gets a row." }, () => ({ content: [] }));
  });
  const server = await startLoginServer(rows.url);
  const settings = mcpServersSchema.parse({ rows: { url: server.url, auth: "oauth" } })["rows"];
  if (settings === undefined) throw new Error("no settings");
  const { store } = database;
  const list = async (sessionId: string, credentialsKey: string | undefined = SECRET) => {
    const mcp = createMcp({ variables: {}, credentialsKey }, store);
    try {
      const listed = await mcp.list(
        { sessionId, name: "rows", settings },
        undefined,
        new AbortController().signal,
      );
      return listed.tools.map(({ name }) => name);
    } finally {
      await mcp.close();
    }
  };
  await expect(list("before")).rejects.toThrow("it requires a login: longhaul mcp login rows");

  const target = { name: "rows", url: server.url, scopes: undefined };
  const browse = (address: string) => void fetch(address);
  await expect(loginToMcp(target, { store, secret: "short" }, browse)).rejects.toThrow(
    "LONGHAUL_CREDENTIALS_KEY",
  );
  // What it gives is stale at once.
  server.expiresIn = 30;
  await loginToMcp(target, { store, secret: SECRET }, browse);
  expect(server.grants).toEqual(["authorization_code"]);
  const all = await wholeDatabase(store);
  expect(all).toContain("rows");
  expect(all).not.toMatch(/(access|refresh)-token-1/);
  expect(all).not.toContain(Buffer.from("access-token-1").toString("hex"));

  server.expiresIn = 3_600;
  expect(await Promise.all([list("one"), list("two")])).toEqual([["get"], ["get"]]);
  expect(server.grants).toEqual(["authorization_code", "refresh_token"]);
  // The server takes its word back before the time: one more refresh.
  server.token = "another";
  expect(await list("three")).toEqual(["get"]);
  expect(server.grants).toHaveLength(3);

  await expect(list("four", "another secret of thirty-two characters")).rejects.toThrow(
    "another LONGHAUL_CREDENTIALS_KEY",
  );
  expect(await logoutOfMcp(target, store)).toBe(true);
  expect(await logoutOfMcp(target, store)).toBe(false);
  await expect(list("five")).rejects.toThrow("it requires a login");
});
