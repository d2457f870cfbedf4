import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFakeSandbox, type FakeSandbox } from "../../support/fake-sandbox.ts";
import { callTool, createFakeMemory } from "../../support/tool-context.ts";

let sandbox: FakeSandbox;

beforeEach(async () => {
  sandbox = await createFakeSandbox();
});

afterEach(async () => {
  await sandbox.dispose();
});

async function put(name: string, content: string | Uint8Array): Promise<void> {
  const at = path.join(sandbox.root, name);
  await mkdir(path.dirname(at), { recursive: true });
  await writeFile(at, content);
}

describe("view_image, todo, read_output and search_history", () => {
  it("shows an image by its content, whatever its name, and no other file", async () => {
    const png = Buffer.from("89504e470d0a1a0a0000000d", "hex");
    const memory = createFakeMemory();
    await put("shot.dat", png);
    await put("fake.png", "text");
    await put("big.gif", Buffer.concat([Buffer.from("GIF89a"), Buffer.alloc(5_000_000)]));
    const shown = await callTool(sandbox, "view_image", { path: "shot.dat" }, { memory });
    expect(shown.files).toEqual([
      { type: "file", mediaType: "image/png", data: expect.stringMatching(/^@blob:[0-9a-f]{64}$/) },
    ]);
    expect([...memory.blobs.values()]).toEqual([png]);
    expect((await callTool(sandbox, "view_image", { path: "fake.png" })).text).toContain("no PNG");
    expect((await callTool(sandbox, "view_image", { path: "big.gif" })).text).toContain("at most 5.0 MB");
  });

  it("renders the checklist and takes one item in progress", async () => {
    const items = [
      { content: "read", status: "completed" },
      { content: "write", status: "in_progress" },
      { content: "test", status: "pending" },
    ];
    expect((await callTool(sandbox, "todo", { items })).text).toBe("[x] read\n[~] write\n[ ] test");
    const two = items.map((item) => ({ ...item, status: "in_progress" }));
    expect((await callTool(sandbox, "todo", { items: two })).outcome).toBe("error");
    expect((await callTool(sandbox, "todo", { items: [{ content: "x", status: "done" }] })).text).toContain(
      "items.0.status",
    );
  });

  it("pages a stored output to its end", async () => {
    const whole = "0123456789".repeat(10_000);
    const memory = createFakeMemory(new Map([["s1c0", whole]]));
    let text = "";
    for (let offset = 0; offset < whole.length;) {
      const page = await callTool(sandbox, "read_output", { handle: "s1c0", offset }, { memory });
      expect(page.truncated).toBe(false);
      text += page.text.replace(/\n\[characters .*$/, "");
      offset = text.length;
    }
    expect(text).toBe(whole);
    expect((await callTool(sandbox, "read_output", { handle: "nope" }, { memory })).outcome).toBe("error");
    expect(
      (await callTool(sandbox, "read_output", { handle: "s1c0", offset: 100_000 }, { memory })).text,
    ).toContain("beyond its end");
  });

  it("shows what the history holds, one row a line", async () => {
    const memory = createFakeMemory(new Map(), [
      { sequence: 7, step: 3, role: "tool", excerpt: "a port\n8080" },
    ]);
    expect((await callTool(sandbox, "search_history", { query: "port" }, { memory })).text).toBe(
      "[message 7, step 3, tool] a port 8080",
    );
    expect((await callTool(sandbox, "search_history", { query: "zzz" }, { memory })).text).toContain(
      "Nothing in this session",
    );
  });
});
