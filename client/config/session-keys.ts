/** The keys that a session's sandbox may use: which the worker has, and what it lacks, before anything is started. */
import { keyVariable, valueProblem, type KeyDefinitions } from "../../activities/config/key-settings.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { policyKeys } from "../../worker/read-policy.ts";
import { ClientError, missing, usageError } from "../console/errors.ts";
import { ownDefinitions, setting } from "./config-files.ts";

interface Asked {
  readonly network: string;
  readonly keys?: readonly string[] | undefined;
}

/**
 * The definitions that a worker has that is started from here: those of its policy; without one, those of the person's own file.
 * Files that cannot be read are told elsewhere: then there are none.
 */
export function workerKeys(environment: Environment, cwd: string): KeyDefinitions {
  const policy = setting(environment, "LONGHAUL_POLICY");
  if (policy !== undefined) return policyKeys(policy);
  try {
    return ownDefinitions(environment, cwd);
  } catch (error) {
    if (error instanceof ClientError) return {};
    throw error;
  }
}

/**
 * Refuses names that mean nothing, before what is missing is told.
 * @param named definitions of the files that count for this session, which may be more than the worker has
 * @throws ClientError (usage)
 */
export function checkKeyNames(
  { network, keys = [] }: Asked,
  worker: KeyDefinitions | undefined,
  named: KeyDefinitions,
): void {
  if (keys.length === 0) return;
  const names = keys.join(", ");
  if (network === "none")
    throw usageError(
      `sandbox.keys has ${names}, and sandbox.network is none: nothing could be asked with a key.`,
      "Use --network listed, which lets the sandbox reach the keys' hosts, or leave the keys out.",
    );
  const unknown = worker === undefined ? undefined : keys.find((name) => !Object.hasOwn(worker, name));
  if (unknown === undefined) return;
  if (Object.hasOwn(named, unknown))
    throw usageError(
      `The key ${unknown} is defined in a file that the worker does not read: of a worker with a policy only that counts, and never the file of --config, since it serves other sessions too.`,
      "Define the key in the policy; without one in the file of LONGHAUL_CONFIG, or in your own longhaul.yaml.",
    );
  const known = Object.keys(worker ?? {}).join(", ") || "none";
  throw usageError(
    `There is no key ${unknown}. The worker's keys: ${known}.`,
    "Keys are defined under `keys` of the worker's policy, or of your own longhaul.yaml: docs/keys.md.",
  );
}

/** @throws ClientError (missing) if a key has no value that could be used */
export function checkKeyValues({ keys = [] }: Asked, environment: Environment): void {
  for (const name of keys) {
    const problem = valueProblem(name, environment[keyVariable(name)]);
    if (problem === undefined) continue;
    throw missing(
      `${problem[0]?.toUpperCase()}${problem.slice(1)}.`,
      `Set ${keyVariable(name)} in the environment of the worker, which a local one has from this shell.`,
    );
  }
}
