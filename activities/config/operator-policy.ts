/** What the operator of a worker lets sessions ask for, whatever their clients say. Pure. */
import { isIP } from "node:net";
import { z } from "zod";
import type { RunConfig } from "./agent-config.ts";
import { containedIn, isPrefix, toPrefix } from "./ip-prefix.ts";
import { modelRateSchema, type ModelRate } from "./model-rate.ts";
import { listedRegistries } from "./registry-settings.ts";
import { megabytes, NETWORKS, sizeSchema } from "./sandbox-settings.ts";

const names = z.array(z.string().min(1));
const days = z.number().positive();

/** The file that `LONGHAUL_POLICY` names. A rule that is not there allows everything. */
export const operatorPolicySchema = z.strictObject({
  /** Images by name or digest; `*` stands for any characters. */
  images: names.optional(),
  /** Names of OCI runtimes; `default` is the engine's own. */
  runtimes: names.optional(),
  networks: z.array(z.enum(NETWORKS)).optional(),
  /** Private addresses and prefixes that `sandbox.allow` may open, and hosts of package registries that are not public. */
  allow: names.optional(),
  max: z
    .strictObject({
      memory: sizeSchema.optional(),
      cpus: z.number().positive().optional(),
      pids: z.number().int().positive().optional(),
      disk: sizeSchema.optional(),
      steps: z.number().int().positive().optional(),
      costUsd: z.number().positive().optional(),
      /** Sessions of one owner that run or wait at once; those without an owner count as one person's. */
      sessionsPerUser: z.number().int().positive().optional(),
    })
    .default({}),
  /** By models as `provider/model`, `*` for any text; the first that fits counts. What a session says may be stricter. */
  rates: z.record(z.string(), modelRateSchema).default({}),
  /** Counted from a session's end. Absent: nothing is deleted by itself. */
  retention: z.strictObject({ sessionsDays: days.optional(), outputsDays: days.optional() }).default({}),
});
export type OperatorPolicy = z.infer<typeof operatorPolicySchema>;

/** What the operator lets all sessions together ask of a model; undefined means anything. @param model `provider/model` */
export function rateOf(policy: OperatorPolicy | undefined, model: string): ModelRate | undefined {
  return Object.entries(policy?.rates ?? {}).find(([pattern]) => matches(pattern, model))?.[1];
}

interface Refusal {
  /** Its name in the file: `max.memory`. */
  readonly rule: string;
  /** What was asked for, and what may be. */
  readonly why: string;
}

/** The first rule that a session's settings go beyond. */
export function policyRefusal(
  policy: OperatorPolicy,
  { sandbox, limits }: Pick<RunConfig, "sandbox" | "limits">,
): Refusal | undefined {
  const { images, runtimes, networks, allow, max } = policy;
  const runtime = sandbox.runtime ?? "default";
  return (
    outside("images", "sandbox.image", sandbox.image, images, matches) ??
    outside("runtimes", "sandbox.runtime", runtime, runtimes) ??
    outside("networks", "sandbox.network", sandbox.network, networks) ??
    addressRefusal(allow, sandbox) ??
    above("max.memory", "sandbox.memory", sandbox.memory, max.memory, megabytes) ??
    above("max.cpus", "sandbox.cpus", sandbox.cpus, max.cpus) ??
    above("max.pids", "sandbox.pids", sandbox.pids, max.pids) ??
    above("max.disk", "sandbox.disk", sandbox.disk, max.disk, megabytes) ??
    above("max.steps", "limits.maxSteps", limits.maxSteps, max.steps) ??
    // Without a limit a session may cost anything.
    above("max.costUsd", "limits.maxCostUsd", limits.maxCostUsd ?? Infinity, max.costUsd)
  );
}

function outside(
  rule: string,
  setting: string,
  asked: string,
  allowed: readonly string[] | undefined,
  fits: (pattern: string, asked: string) => boolean = (name, text) => name === text,
): Refusal | undefined {
  if (allowed === undefined || allowed.some((each) => fits(each, asked))) return undefined;
  return { rule, why: `${setting} is ${asked}, and may be: ${allowed.join(", ") || "nothing"}` };
}

function above<T extends string | number>(
  rule: string,
  setting: string,
  asked: T,
  most: T | undefined,
  size: (value: T) => number = Number,
): Refusal | undefined {
  if (most === undefined || size(asked) <= size(most)) return undefined;
  return { rule, why: `${setting} is ${asked === Infinity ? "not set" : asked}, and may be ${most} at most` };
}

function addressRefusal(
  allowed: readonly string[] | undefined,
  sandbox: RunConfig["sandbox"],
): Refusal | undefined {
  if (allowed === undefined) return undefined;
  const prefixes = allowed.filter(isPrefix).map(toPrefix);
  const opened = sandbox.allow.find((text) => {
    const asked = toPrefix(text);
    return !prefixes.some(
      (each) =>
        each.version === asked.version && each.length <= asked.length && containedIn([each])(asked.address),
    );
  });
  if (opened !== undefined) return outside("allow", "sandbox.allow", opened, allowed);
  const isAllowed = (host: string) =>
    allowed.includes(host) || (isIP(host) !== 0 && containedIn(prefixes)(host));
  const registry = listedRegistries(sandbox).find((host) => !isAllowed(host));
  return registry === undefined
    ? undefined
    : outside("allow", "a registry of sandbox.registries", registry, allowed);
}

/** Whether a pattern, whose `*` is any text, is all of a name. */
function matches(pattern: string, name: string): boolean {
  const source = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${source.join(".*")}$`, "s").test(name);
}
