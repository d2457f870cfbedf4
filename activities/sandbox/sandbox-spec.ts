/** The sandbox that a session's settings ask for. Pure. */
import type { RunConfig } from "../config/agent-config.ts";
import { cacheVariables, registrySettings } from "../config/registry-settings.ts";
import { sharedSkillFiles } from "../config/skill-settings.ts";
import { CACHE_FOLDER, type SandboxSpec } from "./spec.ts";

export function sandboxSpec(
  sessionId: string,
  { sandbox, plan, skills }: Pick<RunConfig, "sandbox" | "plan" | "skills">,
): SandboxSpec {
  const { image, network, allow, guard, cpus, pids, runtime } = sandbox;
  const { env, files, hosts } = registrySettings(sandbox);
  const { certificates, cache } = sandbox.inherited ?? {};
  return {
    sessionId,
    image,
    network,
    allow,
    guard,
    cpus,
    pids,
    ...(plan === true ? { readOnly: true as const } : {}),
    memoryBytes: bytesOf(sandbox.memory),
    disk: { bytes: bytesOf(sandbox.disk), freeBytes: bytesOf(sandbox.diskFree) },
    ...(runtime === undefined ? {} : { runtime }),
    ...(sandbox.container === undefined ? {} : { container: sandbox.container }),
    ...(cache === undefined ? {} : { cache }),
    settings: {
      env: { ...(cache === undefined ? {} : cacheVariables(CACHE_FOLDER)), ...env, ...sandbox.env },
      files: { ...files, ...sharedSkillFiles(skills) },
      ...(certificates === undefined ? {} : { certificates }),
      registries: hosts,
    },
  };
}

function bytesOf(size: string): number {
  return Number.parseInt(size, 10) * (size.endsWith("g") ? 1024 ** 3 : 1024 ** 2);
}
