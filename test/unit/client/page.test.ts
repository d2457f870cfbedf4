import { createHash } from "node:crypto";
import { Script } from "node:vm";
import { expect, test } from "vitest";
import { readPage } from "../../../client/serve/page.ts";

test("the page's script and style are complete, and the policy allows exactly them", () => {
  const { html, policy } = readPage();
  const [, style = ""] = /<style>([^]*?)<\/style>/.exec(html) ?? [];
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(html) ?? [];
  expect(() => new Script(script)).not.toThrow();
  expect(script).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write/);
  for (const text of [style, script]) {
    expect(text.length).toBeGreaterThan(1_000);
    expect(policy).toContain(`'sha256-${createHash("sha256").update(text).digest("base64")}'`);
  }
});
