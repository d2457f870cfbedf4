/** A small disk of a test's own, which it fills and empties. Needs root on Linux. */
import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../worker/local/processes.ts";

export interface SmallDisk {
  readonly folder: string;
  /** Not a byte is left. */
  fill(): Promise<void>;
  /** Takes back what `fill` took. */
  empty(): void;
  remove(): Promise<void>;
}

/** Why there can be none here; undefined where there can. */
export const noSmallDisk =
  process.platform === "linux" && process.getuid?.() === 0 ? undefined : "mounting needs root on Linux";

/** @param size as mount takes it: `100m` */
export async function mountSmallDisk(size: string): Promise<SmallDisk> {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-small-"));
  await run("mount", ["-t", "tmpfs", "-o", `size=${size},mode=755`, "tmpfs", folder]);
  const ballast = join(folder, "ballast");
  return {
    folder,
    async fill() {
      const { bavail, bsize } = statfsSync(folder);
      await run("fallocate", ["-l", String(bavail * bsize), ballast]);
    },
    empty: () => rmSync(ballast, { force: true }),
    async remove() {
      await run("umount", ["--lazy", folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
