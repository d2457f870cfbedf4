import { describe, expect, it } from "vitest";
import { isListed, mcpServersSchema, workerProgramSchema } from "../../../activities/config/mcp-settings.ts";

describe("settings of MCP servers", () => {
  const wrong = (servers: object) =>
    mcpServersSchema.safeParse(servers).error?.issues.map(({ path, message }) => [path.join("."), message]);

  it.each([
    ["neither program nor address", { a: {} }, "a"],
    ["both", { a: { command: "x", url: "https://x.example/" } }, "a"],
    ["headers of a program", { a: { command: "x", headers: { A: "b" } } }, "a.headers"],
    ["arguments of an address", { a: { url: "https://x.example/", args: ["b"] } }, "a.args"],
    ["an address that is none of HTTP", { a: { url: "file:///etc/passwd" } }, "a.url"],
    ["a name with two underscores", { a__b: { command: "x" } }, "a__b"],
    ["a name with a dot", { "a.b": { command: "x" } }, "a.b"],
    ["names whose tokens would have one variable", { "a-b": { command: "x" }, A_b: { command: "x" } }, "A_b"],
    [
      "a variable of the worker that is not for servers",
      { a: { url: "https://x.example/", headers: { K: "${DATABASE_URL}" } } },
      "a.headers",
    ],
    ["the program of a server on the worker", { a: { where: "worker", command: "x" } }, "a.command"],
    ["an address of a server on the worker", { a: { where: "worker", url: "https://x.example/" } }, "a.url"],
    ["a place for an address", { a: { where: "sandbox", url: "https://x.example/" } }, "a.where"],
    ["a longest time below the silence", { a: { command: "x", timeout: 5, maxTimeout: 4 } }, "a.maxTimeout"],
  ])("refuse %s", (_, servers, place) => {
    expect(wrong(servers)?.map(([path]) => path)).toEqual([place]);
  });

  it("accept the manual's examples", () => {
    expect(
      wrong({ a: { url: "https://x.example/", headers: { K: "x ${LONGHAUL_MCP_A_KEY}" }, auth: "token" } }),
    ).toBeUndefined();
    expect(wrong({ a: { where: "worker", readOnly: ["get_*"] } })).toBeUndefined();
    expect(mcpServersSchema.parse({ a: { command: "x" } })["a"]).toMatchObject({
      timeout: 60_000,
      maxTimeout: 600_000,
      startTimeout: 30_000,
      tools: ["*"],
      required: false,
    });
  });
});

it("a program on the worker may have settings meant for servers", () => {
  const given = (env: object) => workerProgramSchema.safeParse({ command: "x", env }).success;
  expect(given({ KEY: "${LONGHAUL_MCP_A_KEY}" })).toBe(true);
  expect(given({ KEY: "${DATABASE_URL}" })).toBe(false);
});

it("the last pattern that matches a tool decides whether it is listed", () => {
  const patterns = ["*", "!delete_*", "delete_draft", "a.c"];
  expect(["get", "delete_all", "delete_draft", "abc"].map((name) => isListed(patterns, name))).toEqual([
    true,
    false,
    true,
    true,
  ]);
  expect(isListed(["a.c"], "abc")).toBe(false);
  expect(isListed([], "abc")).toBe(false);
});
