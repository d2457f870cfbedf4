import { gzipSync } from "node:zlib";
import { pack as createPack } from "tar-stream";
import { describe, expect, it } from "vitest";
import { bytesOfText } from "../../activities/sandbox/path-text.ts";
import {
  assertSafePaths,
  compareManifests,
  packManifest,
  parseListing,
  unpackManifest,
  withinBytes,
} from "../../activities/sandbox/workspace-manifest.ts";
import { packWorkspace, readChain } from "../../activities/sandbox/workspace-pack.ts";

describe("paths", () => {
  const file = (path: string) =>
    ({ kind: "file", path, mode: 0o644, size: 0, mtime: "1.0", ctime: "", target: "" }) as const;

  it.each(["../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a/.", ""])("refuses %j", async (path) => {
    expect(() => assertSafePaths([file(path)])).toThrow(/refused/);
    await expect(
      packWorkspace([{ kind: "file", path, mode: 0o644, bytes: Buffer.from("") }]),
    ).rejects.toThrow(/refused/);
  });

  it("refuses a file below a link, also in a stored manifest", () => {
    const link = { ...file("out"), kind: "link", target: "/etc" } as const;
    expect(() => unpackManifest(packManifest([link, file("out/passwd")]))).toThrow(/below a link/);
  });

  it("refuses a tar entry that leaves the workspace although the manifest does not name it", async () => {
    const tar = createPack();
    tar.entry({ name: "../../evil" }, "x");
    tar.finalize();
    const bytes: Buffer[] = [];
    for await (const piece of tar) bytes.push(piece as Buffer);
    const chain = [{ manifest: packManifest([file("a")]), pack: gzipSync(Buffer.concat(bytes)) }];
    await expect(readChain(chain)).rejects.toThrow(/does not stay/);
  });

  it("are kept to the byte where a name is no UTF-8, beside others that are [R57]", () => {
    const names = [[0xff], [0xc3, 0x28], [0x61, 0xe2, 0x82], [0xed, 0xa0, 0x80], [...Buffer.from("ü漢🎉")]];
    const listing = Buffer.concat(
      names.map((name) => Buffer.concat([Buffer.from("f 644 3 1.0/2.0 "), Buffer.from([...name, 0, 0])])),
    );
    const { entries } = parseListing(listing);
    expect(new Set(entries.map(({ path }) => path)).size).toBe(names.length);
    const again = unpackManifest(packManifest(entries));
    expect(again).toEqual(entries);
    expect(new Set(again.map(({ path }) => bytesOfText(path).toString("hex")))).toEqual(
      new Set(names.map((name) => Buffer.from(name).toString("hex"))),
    );
  });

  it.each([
    ["content", { size: 4 }],
    ["time", { mtime: "2.0" }],
    ["content and its time set back", { ctime: "9.0" }],
    ["mode", { mode: 0o600 }],
  ])("are seen as changed by their %s", (_what, change) => {
    const one = { ...file("a"), size: 3, ctime: "1.0" };
    expect(compareManifests([one], [{ ...one, ...change }]).changed).toHaveLength(1);
    expect(compareManifests([one], [one]).changed).toEqual([]);
    expect(compareManifests([{ ...one, ctime: "?" }], [one]).changed).toHaveLength(1);
    expect(compareManifests([{ ...one, ctime: "" }], [one]).changed).toEqual([]);
  });

  it("the largest files stay out when all together are too much", () => {
    const entries = [30, 50, 10].map((size, at) => ({ ...file(`f${at}`), size }));
    const { kept, skipped } = withinBytes(entries, 45);
    expect(kept.map((entry) => entry.path)).toEqual(["f0", "f2"]);
    expect(skipped).toEqual([{ path: "f1", bytes: 50, reason: "workspace-too-large" }]);
  });
});
