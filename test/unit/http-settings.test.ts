/** What fetch throws for, whoever is asked: it would be tried again as if the network were away. */
import { expect, it } from "vitest";
import { createOutgoing } from "../../activities/process/outgoing-fetch.ts";
import { mcpServersSchema } from "../../activities/config/mcp-settings.ts";
import { providerConfigSchema } from "../../activities/config/model-target.ts";

const isTaken = (settings: { baseUrl?: string; headers?: Record<string, string> }) => {
  const { baseUrl: url = "https://example.com/", headers } = settings;
  const server = { url, headers };
  const both = [providerConfigSchema.safeParse(settings), mcpServersSchema.safeParse({ a: server })];
  return both.map(({ success }) => success);
};

it.each([
  ["a header's name with a blank", { "a b": "1" }],
  ["one without a name", { "": "1" }],
  ["a pseudo-header", { ":path": "/" }],
  ["a value of two lines", { a: "1\nb: 2" }],
  ["a value with NUL", { a: "\0" }],
  ["a value beyond Latin-1", { a: "1 €" }],
  ["the length of another body", { "Content-Length": "5" }],
  ["another way to send", { "transfer-encoding": "chunked" }],
  ["an expectation", { expect: "100-continue" }],
  ["another protocol", { upgrade: "h2c" }],
  ["a connection's header", { "keep-alive": "5" }],
  ["another", { connection: "x y" }],
])("refuses %s", (_what, headers) => {
  expect(isTaken({ headers })).toEqual([false, false]);
});

it.each(["http://me:secret@example.com/v1", "http://me@example.com/", "http://127.0.0.1:6000/v1"])(
  "refuses the address %s, which fetch does not take",
  async (baseUrl) => {
    expect(isTaken({ baseUrl })).toEqual([false, false]);
    const { fetch, close } = await createOutgoing();
    const failure: unknown = await fetch(baseUrl).catch((error: unknown) => error);
    await close();
    const { message, cause } = failure as Error;
    expect(`${message} ${String(cause)}`).toMatch(/credentials|bad port/);
  },
);

it("takes what there is", () => {
  const headers = { Authorization: "Bearer a.b-c", "X-Title": "Zoë's\ttool", "x_y~1": "" };
  expect(isTaken({ headers, baseUrl: "http://[::1]:8080/v1?a=b" })).toEqual([true, true]);
});
