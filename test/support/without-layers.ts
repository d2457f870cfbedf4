/** An engine on which the kernel cannot stack volumes, for one test. */
import { onTestFinished } from "vitest";
import type { AgentDeps } from "../../activities/runtime/deps.ts";

/** Until the test's end, the agent's host says that it has no layers. */
export function withoutLayers({ sandboxHost }: Pick<AgentDeps, "sandboxHost">, why: string): void {
  const { bases } = sandboxHost;
  if (bases === undefined) throw new Error("This host has no layers anyway.");
  const host: { -readonly [Key in keyof typeof sandboxHost]: (typeof sandboxHost)[Key] } = sandboxHost;
  host.bases = { ...bases, unable: async () => why };
  onTestFinished(() => void (host.bases = bases));
}
