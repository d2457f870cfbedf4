/** What the Docker engine makes of a box's walls: for `doctor`. Starts one box for a second, and removes it. */
import { createDockerHost } from "../../activities/sandbox/docker.ts";
import { connectDocker } from "../../activities/sandbox/connect-docker.ts";
import { agentConfigSchema } from "../../activities/agent-config.ts";
import type { Sandbox } from "../../activities/sandbox/sandbox.ts";
import { within } from "./within.ts";

export interface SandboxFinding {
  readonly ok: boolean;
  readonly found: string;
  readonly mend?: string;
}

const MIB = 2 ** 20;
const TIMEOUT_MS = 5_000;

/** Whether boxes are shut off from private addresses here. Never rejects. */
export async function checkNetwork(image: string | undefined): Promise<SandboxFinding> {
  const host = createDockerHost({ docker: connectDocker(), name: "doctor" });
  const sessionId = `doctor-${process.pid}`;
  try {
    const opening = host.open({
      sessionId,
      image: image ?? agentConfigSchema.parse({}).sandbox.image,
      network: "bridge",
      memoryBytes: 128 * MIB,
      cpus: 1,
      pids: 32,
    });
    return networkFinding((await within(opening, TIMEOUT_MS)).network);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { ok: true, found: `not tried: ${why}` };
  } finally {
    await host.remove(sessionId).catch(() => undefined);
    await host.close();
  }
}

export function networkFinding({ reach, why }: Sandbox["network"]): SandboxFinding {
  if (reach !== "everything") {
    return { ok: true, found: "bridge: the internet; not the host, its networks or metadata services" };
  }
  return {
    ok: true,
    found: `bridge: everything, private addresses and the host too (${why ?? "no reason told"})`,
    mend: "set sandbox.network: none, or keep them off with a firewall of the host",
  };
}

/** Versions with the mends of CVE-2025-31133, -52565 and -52881, by which a box could get at its host. */
const MENDED: readonly (readonly [number, number, number])[] = [
  [1, 2, 8],
  [1, 3, 3],
];

/** @param version as the engine tells it, such as `1.1.5+ds1-1+deb12u1`; undefined where it has no runc */
export function runcFinding(version: string | undefined): SandboxFinding {
  const numbers = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version ?? "");
  if (version === undefined || numbers === null) return { ok: true, found: "another runtime than runc" };
  const [major = 0, minor = 0, patch = 0] = numbers.slice(1).map(Number);
  const mended =
    major > 1 || minor > 3 || MENDED.some(([, series, least]) => minor === series && patch >= least);
  if (mended) return { ok: true, found: `runc ${version}` };
  return {
    ok: true,
    found: `runc ${version}, by its number without the mends of CVE-2025-31133, -52565 and -52881`,
    mend: "update to runc 1.2.8, 1.3.3 or newer, unless your distribution has put them in",
  };
}

/** @returns undefined where the engine does not answer */
export async function runcVersion(): Promise<string | undefined> {
  const { Components: parts } = (await within(connectDocker().version(), TIMEOUT_MS)) as {
    Components?: readonly { readonly Name: string; readonly Version: string }[];
  };
  return parts?.find(({ Name: name }) => name === "runc")?.Version;
}
