/** A small disk of a test's own, which it fills and empties. Needs root on Linux. */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../client/setup/processes.ts";

export interface SmallDisk {
  readonly folder: string;
  /** Not a byte is left, whoever else writes meanwhile; may be called again when others have given something back. */
  fill(): void;
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

/** Until the disk refuses it: what is free is not asked first, for another process may take it in between. */
function appendUntilFull(file: number, chunk: Buffer): void {
  try {
    for (;;) writeSync(file, chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
}
