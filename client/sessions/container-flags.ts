/** `--container` and the related flags. */
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { setupSettingsSchema } from "../../activities/config/setup-settings.ts";
import type { AttachedContainer } from "../../activities/config/container-settings.ts";
import { usageError } from "../console/errors.ts";

export interface ContainerFlags {
  /** Another person's running container. */
  readonly container?: string;
  readonly workspaceDir?: string;
}

/** Flags that would change a container, or copy files into it. */
const EXCLUDED = ["workspace", "repo", "plan", "devcontainer", "network", "allowDomain"] as const;

/** @throws ClientError (usage, missing) */
export async function containerFor(
  flags: ContainerFlags & { readonly [Name in (typeof EXCLUDED)[number]]?: unknown },
): Promise<AttachedContainer | undefined> {
  const { container, workspaceDir } = flags;
  if (container === undefined) {
    if (workspaceDir !== undefined)
      throw usageError("--workspace-dir names a folder of --container, and there is none.");
    return undefined;
  }
  const other = EXCLUDED.find((name) => flags[name] !== undefined && flags[name] !== false);
  if (other !== undefined)
    throw usageError(
      `--container cannot be combined with --${other === "allowDomain" ? "allow-domain" : other}: the container is used as it is, with its own files and network.`,
    );
  if (workspaceDir !== undefined && !/^\/./.test(workspaceDir))
    throw usageError("--workspace-dir is an absolute folder of the container, below /.");
  const { checkContainer } = await import("../setup/local-containers.ts");
  return checkContainer(container, workspaceDir);
}

/** The settings of a session in a container: no set-up, and no delegates, which would need a copy. */
export function inContainer(config: RunConfig, container: AttachedContainer | undefined): RunConfig {
  if (container === undefined) return config;
  const { sandbox, delegate } = config;
  return {
    ...config,
    sandbox: { ...sandbox, setup: setupSettingsSchema.parse([]), container },
    ...(delegate === undefined ? {} : { delegate: { ...delegate, enabled: false } }),
  };
}
