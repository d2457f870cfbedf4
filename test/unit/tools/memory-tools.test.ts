import { describe, expect, it } from "vitest";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { splitWords } from "../../../activities/tools/search-history.ts";
import { DOT_PNG, png as picture } from "../../support/images.ts";
import type { ToolContext } from "../../../activities/tools/tool.ts";
import { callTool, createFakeMemory, useFakeSandbox, putFile } from "../../support/tool-context.ts";

const sandbox = useFakeSandbox();

const put = (name: string, content: string | Uint8Array) => putFile(sandbox, name, content);
/** What a call shows the model. */
const shown = async (name: string, input: unknown, overrides?: Partial<ToolContext>) =>
  (await callTool(sandbox, name, input, overrides)).text;

describe("view_image, todo, read_output and search_history", () => {
  it("shows an image by its content, whatever its name, and no other file", async () => {
    const png = DOT_PNG;
    const memory = createFakeMemory();
    await put("shot.dat", png);
    await put("fake.png", "text");
    await put("big.gif", Buffer.concat([Buffer.from("GIF89a"), Buffer.alloc(3_900_000)]));
    const seen = await callTool(sandbox, "view_image", { path: "shot.dat" }, { memory });
    expect(seen.files).toEqual([
      { type: "file", mediaType: "image/png", data: expect.stringMatching(/^@blob:[0-9a-f]{64}$/) },
    ]);
    expect([...memory.blobs.values()]).toEqual([png]);
    await put("cut.png", png.subarray(0, 40));
    expect(await shown("view_image", { path: "cut.png" })).toContain("damaged");
    expect(await shown("view_image", { path: "fake.png" })).toContain("not a PNG");
    expect(await shown("view_image", { path: "big.gif" })).toContain("at most 3.9 MB");
    await put("long.png", picture(1, 8_001, [0, 0, 0]));
    expect(await shown("view_image", { path: "long.png" })).toContain("is 1 × 8001 pixels");
  });

  it("shows no image whose bytes contain a secret", async () => {
    const secret = "s3cret/Value+with=odd chars~42";
    const { maskWindow } = createSanitizer([secret]);
    const picture = Buffer.concat([DOT_PNG.subarray(0, 37), Buffer.from(secret), DOT_PNG.subarray(37)]);
    // Within the chunk of the encoded picture.
    picture.writeUInt32BE(picture.readUInt32BE(33) + secret.length, 33);
    const shifted = Buffer.concat([
      picture.subarray(0, 37),
      Buffer.from("IDAT"),
      Buffer.from(secret),
      picture.subarray(37 + secret.length + 4),
    ]);
    await put("noted.png", shifted);
    const memory = createFakeMemory();
    const seen = await callTool(sandbox, "view_image", { path: "noted.png" }, { memory, maskWindow });
    expect(seen).toMatchObject({
      outcome: "error",
      text: expect.stringContaining("contain a secret") as string,
    });
    expect(memory.blobs.size).toBe(0);
  });

  it("renders the checklist and accepts one item in progress", async () => {
    const items = [
      { content: "read", status: "completed" },
      { content: "write", status: "in_progress" },
      { content: "test", status: "pending" },
    ];
    expect(await shown("todo", { items })).toBe("[x] read\n[~] write\n[ ] test");
    const two = items.map((item) => ({ ...item, status: "in_progress" }));
    expect((await callTool(sandbox, "todo", { items: two })).outcome).toBe("error");
    expect(await shown("todo", { items: [{ content: "x", status: "done" }] })).toContain("items.0.status");
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
    expect(await shown("read_output", { handle: "s1c0", offset: 100_000 }, { memory })).toContain(
      "beyond its end",
    );
  });

  it("shows matches of the history, one row a line", async () => {
    const memory = createFakeMemory(new Map(), [
      { sequence: 7, step: 3, role: "tool", excerpt: "a port\n8080" },
    ]);
    expect(await shown("search_history", { query: "8080 port" }, { memory })).toBe(
      "[message 7, step 3, tool] a port 8080",
    );
    const output = { handle: "s4c0", offset: 31_000 };
    const whole = createFakeMemory(new Map(), [
      { sequence: 9, step: 4, role: "tool", excerpt: "…the port…", output },
    ]);
    expect(await shown("search_history", { query: "port" }, { memory: whole })).toBe(
      '[whole output of step 4: read_output handle="s4c0" offset=31000] …the port…',
    );
    expect(await shown("search_history", { query: "zzz" }, { memory })).toContain(
      'Nothing in this session contains "zzz". Try',
    );
  });

  it("splits a query into words, with quoted text as one", () => {
    expect(splitWords('port "address in use"  EADDR port')).toEqual(["port", "address in use", "EADDR"]);
    expect(splitWords('an "open quote')).toEqual(["an", "open", "quote"]);
    expect(splitWords(' "" ')).toEqual([]);
    expect(
      splitWords("w ".repeat(50).concat(Array.from({ length: 50 }, (_v, i) => `x${i}`).join(" "))),
    ).toHaveLength(12);
  });
});
