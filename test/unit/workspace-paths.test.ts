import { gzipSync } from "node:zlib";
import { pack as createPack } from "tar-stream";
import { describe, expect, it } from "vitest";
import { bytesOfText } from "../../activities/store/path-text.ts";
import { assertSafePaths, packManifest, unpackManifest } from "../../activities/store/workspace-manifest.ts";
import { packWorkspace, readChain } from "../../activities/store/workspace-pack.ts";
import { chainOf } from "../support/chain-of.ts";

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

  it("refuses a tar entry that leaves the workspace although the manifest does not list it", async () => {
    const tar = createPack();
    tar.entry({ name: "../../evil" }, "x");
    tar.finalize();
    const bytes: Buffer[] = [];
    for await (const piece of tar) bytes.push(piece as Buffer);
    const chain = chainOf({ manifest: packManifest([file("a")]), pack: gzipSync(Buffer.concat(bytes)) });
    await expect(readChain(chain)).rejects.toThrow(/does not stay/);
  });

  it("keep every byte of a name that is not UTF-8, next to others that are", { tags: ["R57"] }, () => {
    const names = [[0xff], [0xc3, 0x28], [0x61, 0xe2, 0x82], [0xed, 0xa0, 0x80], [...Buffer.from("ü漢🎉")]];
    const listing = Buffer.concat(
      names.map((name) => Buffer.concat([Buffer.from("f 644 3 1.0/2.0 "), Buffer.from([...name, 0, 0])])),
    );
    const entries = unpackManifest(gzipSync(listing));
    expect(new Set(entries.map(({ path }) => path)).size).toBe(names.length);
    const again = unpackManifest(packManifest(entries));
    expect(new Set(again)).toEqual(new Set(entries));
    expect(new Set(again.map(({ path }) => bytesOfText(path).toString("hex")))).toEqual(
      new Set(names.map((name) => Buffer.from(name).toString("hex"))),
    );
  });

  it("are checked in time linear in their length, at any depth", () => {
    const deep = Array.from({ length: 2_040 }, (_, at) => ({
      ...file(Array.from({ length: at + 1 }, () => "d").join("/")),
      kind: "folder" as const,
    }));
    const inside = Array.from({ length: 1_000 }, (_, at) => file(`${deep.at(-1)?.path}/${at}`));
    const began = process.cpuUsage().user;
    assertSafePaths([...deep, ...inside]);
    expect((process.cpuUsage().user - began) / 1_000).toBeLessThan(2_000);
    expect(() => assertSafePaths([...inside, ...deep, file("d/d"), file("d/d/e")])).toThrow(/below a file/);
  });
});
