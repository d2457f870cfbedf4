/** What the flags of `run` and `start` say about the sandbox's network, laid over the files. Pure. */
import { domainProblem } from "../../activities/config/egress-domains.ts";
import type { ConfigFile } from "./config-file.ts";
import { usageError } from "../console/errors.ts";

export const NETWORKS = ["bridge", "none", "listed"] as const;

export interface SandboxFlags {
  readonly network?: (typeof NETWORKS)[number] | undefined;
  /** Names that the sandbox may ask for, besides those of the files. */
  readonly allowDomain?: readonly string[] | undefined;
}

/** @throws ClientError (usage) for a name that cannot be allowed, or that would have no effect */
export function withSandboxFlags(
  file: ConfigFile["sandbox"],
  { network, allowDomain = [] }: SandboxFlags,
): ConfigFile["sandbox"] {
  for (const domain of allowDomain) {
    const problem = domainProblem(domain);
    if (problem !== undefined) throw usageError(`--allow-domain ${domain}: ${problem}.`);
  }
  const sandbox = { ...file, ...(network === undefined ? {} : { network }) };
  if (allowDomain.length === 0) return sandbox;
  if (sandbox.network !== "listed") {
    throw usageError(
      `--allow-domain has no effect with sandbox.network: ${sandbox.network ?? "bridge"}.`,
      "Add --network listed: then the sandbox reaches the listed names alone.",
    );
  }
  return { ...sandbox, domains: [...(file?.domains ?? []), ...allowDomain] };
}
