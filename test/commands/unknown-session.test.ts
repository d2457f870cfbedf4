import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { longhaul } from "../support/commands/longhaul.ts";

test.each([
  ["cancel"],
  ["compact"],
  ["context"],
  ["diff"],
  ["export"],
  ["fork", "--detach"],
  ["interrupt"],
  ["pull", tmpdir()],
  ["report", "-"],
  ["retry"],
  ["say", "hello"],
  ["status", "--json"],
  ["watch"],
])("%s: an unknown session is 5, with nothing on stdout", async (verb, ...more) => {
  expect(await longhaul([verb, "no-such-session", ...more])).toMatchObject({ code: 5, out: "" });
});
