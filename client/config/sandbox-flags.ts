/** The sandbox flags of `run` and `start`, merged over the files. Pure. */
import { closedAddress, domainProblem } from "../../activities/config/egress-domains.ts";
import { setupSettingsSchema } from "../../activities/config/setup-settings.ts";
import type { ConfigFile } from "./config-file.ts";
import type { Devcontainer } from "./devcontainer.ts";
import { usageError } from "../console/errors.ts";
import { given } from "../console/given.ts";

export const NETWORKS = ["bridge", "none", "listed"] as const;

export interface SandboxFlags {
  readonly network?: (typeof NETWORKS)[number] | undefined;
  /** Domains that the sandbox may reach, in addition to those in the files. */
  readonly allowDomain?: readonly string[] | undefined;
  /** The workspace's devcontainer.json, on request. */
  readonly fromDevcontainer?: Devcontainer | undefined;
}

/** The person's own settings override the devcontainer's, except for its image, which the flag requested. */
function withContainer(
  file: ConfigFile["sandbox"],
  container: Devcontainer | undefined,
): ConfigFile["sandbox"] {
  if (container === undefined) return file;
  const { image, build, setup, env } = container;
  const own = setupSettingsSchema.parse(file?.setup ?? []);
  return {
    ...file,
    ...given({ image, build }),
    env: { ...env, ...file?.env },
    setup: { ...own, commands: [...setup, ...own.commands] },
  };
}

/** @throws ClientError (usage) for a domain that cannot be allowed, or would have no effect */
export function withSandboxFlags(
  file: ConfigFile["sandbox"],
  { network, allowDomain = [], fromDevcontainer }: SandboxFlags,
): ConfigFile["sandbox"] {
  for (const domain of allowDomain) {
    const problem = domainProblem(domain) ?? closedAddress(domain, file?.allow ?? []);
    if (problem !== undefined) throw usageError(`--allow-domain ${domain}: ${problem}.`);
  }
  const sandbox = { ...withContainer(file, fromDevcontainer), ...(network === undefined ? {} : { network }) };
  if (allowDomain.length === 0) return sandbox;
  if (sandbox.network !== "listed") {
    throw usageError(
      `--allow-domain has no effect with sandbox.network: ${sandbox.network ?? "bridge"}.`,
      "Add --network listed: then the sandbox reaches only the listed names.",
    );
  }
  return { ...sandbox, domains: [...(file?.domains ?? []), ...allowDomain] };
}
