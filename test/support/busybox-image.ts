/** An image with busybox and nothing else: the least that a workspace can be saved in. No Python, no bash, nothing GNU. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import type Dockerode from "dockerode";
import { TAR_END, tarEntry, type TarEntry } from "../../activities/sandbox/tar-writer.ts";
import { run } from "../../worker/local/processes.ts";
import { findOnPath } from "../../worker/local/temporal-binary.ts";

/** What saving and restoring take, and what a test fills a workspace with. */
const APPLETS = ["sh", "find", "tar", "xargs", "rm", "chmod", "sleep", "mkdir", "ln", "mv", "readlink"];

/** A static busybox: the one on PATH, else Debian's. @returns undefined where there is none to be had */
export async function findBusybox(): Promise<Uint8Array | undefined> {
  const there = findOnPath("busybox");
  if (there !== undefined) return readFileSync(there);
  if (findOnPath("apt-get") === undefined) return undefined;
  const home = mkdtempSync(join(tmpdir(), "longhaul-busybox-"));
  try {
    await run("apt-get", ["-q", "download", "busybox-static"], { cwd: home, timeout: 60_000 });
    const [name = ""] = readdirSync(home).filter((file) => file.endsWith(".deb"));
    await run("dpkg-deb", ["-x", join(home, name), home]);
    return readFileSync(join(home, "bin", "busybox"));
  } catch {
    return undefined;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Makes the image under this name. */
export async function importBusybox(docker: Dockerode, busybox: Uint8Array, name: string): Promise<void> {
  const nothing = new Uint8Array(0);
  const entry = (path: string, more: Partial<TarEntry>): Uint8Array[] =>
    tarEntry({
      kind: "folder",
      path: Buffer.from(path),
      mode: 0o755,
      content: nothing,
      mtime: "0",
      target: nothing,
      ...more,
    });
  const pieces = [
    ...entry("bin", {}),
    ...entry("workspace", { mode: 0o777 }),
    ...entry("bin/busybox", { kind: "file", content: busybox }),
    ...APPLETS.flatMap((applet) =>
      entry(`bin/${applet}`, { kind: "link", mode: 0o777, target: Buffer.from("busybox") }),
    ),
    TAR_END,
  ];
  const stream = await docker.importImage(Readable.from([Buffer.concat(pieces)]), {
    repo: name,
    fromSrc: "-",
  });
  await new Promise<void>((resolve, reject) => {
    stream.on("end", resolve).on("error", reject).resume();
  });
}
