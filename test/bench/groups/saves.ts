/** Saving a small change in a workspace of 5,000 files, in a real sandbox: what a step that changed a file costs in addition. */
import type { Sandbox } from "../../../activities/sandbox/sandbox.ts";
import type { WorkspaceBase } from "../../../activities/workspace/workspace.ts";
import { median, quantile } from "../stats.ts";
import type { Figure } from "../table.ts";
import { saveWorkspace } from "../../support/save-workspace.ts";

const FILL =
  'for d in $(seq 50); do mkdir -p f$d; for f in $(seq 100); do echo "file $d $f, which has some content of its own" > f$d/$f.txt; done; done';
/** Source: issue of the crash-proof session, checkpoints. */
const GOAL_MS = 150;

export async function measureSaves(sandbox: Sandbox, saves: number): Promise<Figure[]> {
  await sandbox.run({ id: "fill", argv: ["bash", "-c", FILL], timeoutMs: 60_000 });
  const first = performance.now();
  let base = await save(sandbox, undefined);
  const wholeMs = performance.now() - first;
  const small: number[] = [];
  const none: number[] = [];
  for (let i = 0; i < saves; i += 1) {
    await sandbox.files.write(`f${(i % 50) + 1}/7.txt`, Buffer.from(`changed ${i}`));
    // A model answers in between; a save that began within the same tick would look twice.
    await new Promise((resolve) => setTimeout(resolve, 30));
    const began = performance.now();
    base = await save(sandbox, base);
    small.push(performance.now() - began);
    const again = performance.now();
    await saveWorkspace(sandbox, base);
    none.push(performance.now() - again);
  }
  return [
    {
      name: "save of a small change in 5,000 files",
      value: median(small),
      unit: "ms",
      n: small.length,
      goal: { of: "value", atMost: GOAL_MS },
      note: `p95 ${quantile(small, 0.95).toFixed(0)}; if nothing changed ${median(none).toFixed(0)}; the whole ${wholeMs.toFixed(0)}; in parallel with the next model step`,
    },
  ];
}

async function save(sandbox: Sandbox, base: WorkspaceBase | undefined): Promise<WorkspaceBase> {
  const { saved } = await saveWorkspace(sandbox, base);
  if (!saved) throw new Error("Nothing was saved.");
  return { manifest: saved.manifest, depth: saved.whole ? 1 : (base?.depth ?? 0) + 1 };
}
