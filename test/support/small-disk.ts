/** A small disk of the test's own, to fill and empty. Needs root on Linux. */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../client/setup/processes.ts";

export interface SmallDisk {
  readonly folder: string;
  /** Leaves no byte free, even while others write; may be called again when others have freed space. */
  fill(): void;
  /** Frees what `fill` took. */
  empty(): void;
  remove(): Promise<void>;
}

/** Why this machine cannot have one; undefined if it can. */
export const noSmallDisk =
  process.platform === "linux" && process.getuid?.() === 0 ? undefined : "mounting needs root on Linux";

/** @param size as mount takes it: `100m` */
export async function mountSmallDisk(size: string): Promise<SmallDisk> {
  const folder = mkdtempSync(join(tmpdir(), "longhaul-small-"));
  await run("mount", ["-t", "tmpfs", "-o", `size=${size},mode=755`, "tmpfs", folder]);
  const ballast = join(folder, "ballast");
  return {
    folder,
    fill() {
      const file = openSync(ballast, "a");
      for (const chunk of [Buffer.alloc(1_048_576), Buffer.alloc(1)]) appendUntilFull(file, chunk);
      closeSync(file);
    },
    empty: () => rmSync(ballast, { force: true }),
    async remove() {
      await run("umount", ["--lazy", folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Writes until the disk is full, without asking for the free space, which another process may take in between. */
function appendUntilFull(file: number, chunk: Buffer): void {
  try {
    for (;;) writeSync(file, chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
}
