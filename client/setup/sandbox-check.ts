/** Checks for `doctor` how well the Docker engine isolates a sandbox. Starts one for a second, and removes it. */
import { randomUUID } from "node:crypto";
import { probeId } from "../../activities/contract/session-ids.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { listNames } from "../console/format.ts";
import type { AgentConfig } from "../../activities/config/agent-config.ts";
import { type Sandbox } from "../../activities/sandbox/sandbox.ts";
import { DEFAULT_IMAGE } from "../../activities/config/sandbox-settings.ts";
import { runcOf, type Runc } from "../../activities/sandbox/docker/known-escapes.ts";
import { withTimeout } from "../../temporal/patience.ts";
import { reasonOf } from "../../activities/contract/errors.ts";

export interface Finding {
  readonly ok: boolean;
  /** Not ideal, or not measured, but it does not stop a task. */
  readonly warning?: true;
  readonly found: string;
  /** How to fix the problem, if there is one. */
  readonly fix?: string;
}

const MIB = 2 ** 20;
const TIMEOUT_MS = 5_000;

/** Measures in one sandbox whether sandboxes are isolated as required. Never rejects. */
export async function checkSandbox(options: {
  readonly image: string | undefined;
  readonly guardImage: string | undefined;
  readonly sandbox: Pick<AgentConfig["sandbox"], "network" | "guard" | "allow" | "runtime">;
}): Promise<Readonly<Record<"network" | "isolation", Finding>>> {
  const { image, guardImage, sandbox } = options;
  const host = createDockerHost({
    docker: connectDocker(),
    name: "doctor",
    guardImage,
  });
  const sessionId = probeId("doctor", randomUUID());
  try {
    const opening = host.open({
      sessionId,
      image: image ?? DEFAULT_IMAGE,
      network: sandbox.network,
      allow: sandbox.allow,
      // Measured here, judged below.
      guard: "best-effort",
      memoryBytes: 128 * MIB,
      cpus: 1,
      pids: 32,
      runtime: sandbox.runtime,
    });
    const { network, gaps = [] } = await withTimeout(opening, TIMEOUT_MS);
    return {
      network: networkFinding(network, sandbox),
      isolation: isolationFinding(
        gaps.filter((gap) => gap !== network.why),
        sandbox,
      ),
    };
  } catch (error) {
    const why = reasonOf(error);
    const unmeasured = { ok: true, warning: true, found: `not measured: ${why}` } as const;
    return { network: unmeasured, isolation: unmeasured };
  } finally {
    await withTimeout(host.remove(sessionId), TIMEOUT_MS).catch(() => undefined);
    await host.close();
  }
}

export function networkFinding(
  { reach, why, tried }: Sandbox["network"],
  { guard, allow }: { readonly guard: "required" | "best-effort"; readonly allow: readonly string[] },
): Finding {
  const measured = `${tried ?? 0} addresses tried`;
  if (reach === "none") return { ok: true, found: "none: nothing outside the sandbox" };
  if (reach !== "everything") {
    const open = reach === "listed" ? "listed: only the allowed names" : "bridge: the internet";
    const but = allow.length === 0 ? "; not" : `, and by sandbox.allow ${listNames(allow)}; nothing else of`;
    return { ok: true, found: `${open}${but} the host, its networks or metadata services (${measured})` };
  }
  const open = `bridge: everything, including private addresses and the host (${why ?? "reason unknown"})`;
  return guard === "best-effort"
    ? {
        ok: true,
        warning: true,
        found: open,
        fix: "sandbox.guard is best-effort, so tasks run anyway; sandbox.network: none isolates them",
      }
    : {
        ok: false,
        found: open,
        fix: "tasks are refused: set sandbox.network: none, or sandbox.guard: best-effort to run them unguarded",
      };
}

/** @param gaps gaps in the isolation, other than the network's, as read in a sandbox */
function isolationFinding(
  gaps: readonly string[],
  { guard, runtime }: Pick<AgentConfig["sandbox"], "guard" | "runtime">,
): Finding {
  if (gaps.length === 0) {
    const filter = runtime === undefined ? "seccomp filter, " : `runtime ${runtime}, `;
    return { ok: true, found: `${filter}no new privileges, two capabilities (read in a sandbox)` };
  }
  const lacks = gaps.join("; ");
  const fix = "the Docker engine's settings weaken the isolation: start it with its default seccomp profile";
  return guard === "best-effort"
    ? { ok: true, warning: true, found: lacks, fix }
    : { ok: false, found: lacks, fix };
}

/** Never rejects. */
export const checkRunc = (): Promise<Finding> =>
  withTimeout(runcOf(connectDocker()), TIMEOUT_MS).then(runcFinding, () => ({
    ok: true,
    warning: true,
    found: "unknown",
  }));

/** @param runc undefined if the engine has another runtime, or does not report it */
export function runcFinding(runc: Runc | undefined): Finding {
  if (runc === undefined)
    return { ok: true, warning: true, found: "a runtime other than runc: its version was not checked" };
  const { version, open } = runc;
  if (open.length === 0) return { ok: true, found: `runc ${version}` };
  return {
    ok: true,
    warning: true,
    found: `runc ${version}, a version without the fixes of ${open.join(", ")}`,
    fix: "update runc (1.2.8, 1.3.3 and newer have all fixes); on a server, a worker starts with this version only if LONGHAUL_OLD_RUNC=warn is set",
  };
}
