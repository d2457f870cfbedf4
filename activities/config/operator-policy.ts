/** What a worker's operator allows sessions to use, whatever their clients request. Pure. */
import { isIP } from "node:net";
import { z } from "zod";
import type { Precedence } from "../contract/precedence.ts";
import type { RunConfig } from "./agent-config.ts";
import { containedIn, isPrefix, toPrefix } from "./ip-prefix.ts";
import { modelRateSchema, type ModelRate } from "./model-rate.ts";
import type { ModelTarget } from "./model-target.ts";
import { fullModelName, usualAddress } from "./providers.ts";
import { LAST_PRIORITY, prioritySchema, USUAL_PRIORITY } from "./precedence.ts";
import { listedRegistries } from "./registry-settings.ts";
import { workerProgramSchema } from "./mcp-settings.ts";
import { NETWORKS } from "./sandbox-settings.ts";
import { megabytes, sizeSchema } from "./sizes.ts";
import { fitsPattern } from "./star-pattern.ts";

const names = z.array(z.string().min(1));
const days = z.number().positive();

/** The file that `LONGHAUL_POLICY` names. An absent rule allows everything. */
export const operatorPolicySchema = z.strictObject({
  /** Images by name or digest; `*` matches any characters. */
  images: names.optional(),
  /** Names of OCI runtimes; `default` is the engine's own. */
  runtimes: names.optional(),
  networks: z.array(z.enum(NETWORKS)).optional(),
  /** Private addresses and prefixes that `sandbox.allow` may open, and hosts of private package registries. */
  allow: names.optional(),
  /** Models as `PROVIDER/MODEL`; for a provider whose address the session sets, `HOST/MODEL`. */
  models: names.optional(),
  /** MCP servers: hosts of HTTP servers, names of programs in the sandbox. */
  mcp: names.optional(),
  /** Tenants by name, `*` for any text. A session must name one of them. */
  tenants: names.optional(),
  max: z
    .strictObject({
      memory: sizeSchema.optional(),
      cpus: z.number().positive().optional(),
      pids: z.number().int().positive().optional(),
      disk: sizeSchema.optional(),
      steps: z.number().int().positive().optional(),
      /** Size of a session's saved files, as `limits.maxSaved`. */
      saved: sizeSchema.optional(),
      costUsd: z.number().positive().optional(),
      /** The most urgent priority that a session may have: 1 goes first. */
      priority: prioritySchema.optional(),
      /** Most sessions of one owner that run or wait at once; those without an owner count as one person's. */
      sessionsPerUser: z.number().int().positive().optional(),
    })
    .default({}),
  /** By models as `provider/model`, `*` for any text; the first match applies. A session may set stricter limits. */
  rates: z.record(z.string(), modelRateSchema).default({}),
  /** Programs on the worker that sessions may use as MCP servers, by the names that sessions use. */
  mcpServers: z.record(z.string(), workerProgramSchema).optional(),
  /** Counted from a session's end. Absent: nothing is deleted automatically. */
  retention: z.strictObject({ sessionsDays: days.optional(), outputsDays: days.optional() }).default({}),
});
export type OperatorPolicy = z.infer<typeof operatorPolicySchema>;

/** The operator's limits on a model over all sessions; undefined means unlimited. @param model `provider/model` */
export function rateOf(policy: OperatorPolicy | undefined, model: string): ModelRate | undefined {
  return Object.entries(policy?.rates ?? {}).find(([pattern]) => fitsPattern(pattern, model))?.[1];
}

export interface PolicyRefusal {
  /** The rule's name in the file, such as `max.memory`. */
  readonly rule: string;
  /** What was requested, and what is allowed. */
  readonly why: string;
  /** Only the session's own model is refused, which a person can change. */
  readonly isOwnModel?: true;
}

/**
 * The first rule that a session's settings exceed, or that its run's start options exceed.
 * @param begun the run's start options: a client using Temporal directly may set more than the settings say
 */
export function policyRefusal(
  policy: OperatorPolicy,
  config: RunConfig,
  begun: Precedence = {},
): PolicyRefusal | undefined {
  const { sandbox, limits } = config;
  const { images, runtimes, networks, allow, max } = policy;
  const runtime = sandbox.runtime ?? "default";
  return (
    outside({ rule: "images", setting: "sandbox.image" }, sandbox.image, images, fitsPattern) ??
    outside({ rule: "runtimes", setting: "sandbox.runtime" }, runtime, runtimes) ??
    outside({ rule: "networks", setting: "sandbox.network" }, sandbox.network, networks) ??
    addressRefusal(allow, sandbox) ??
    modelRefusal(policy, config) ??
    mcpRefusal(policy, config) ??
    precedenceRefusal(policy, config) ??
    precedenceRefusal(policy, {
      priority: begun.priorityKey ?? config.priority,
      tenant: begun.fairnessKey ?? config.tenant,
    }) ??
    above({ rule: "max.memory", setting: "sandbox.memory" }, sandbox.memory, max.memory) ??
    above({ rule: "max.cpus", setting: "sandbox.cpus" }, sandbox.cpus, max.cpus) ??
    above({ rule: "max.pids", setting: "sandbox.pids" }, sandbox.pids, max.pids) ??
    above({ rule: "max.disk", setting: "sandbox.disk" }, sandbox.disk, max.disk) ??
    above({ rule: "max.steps", setting: "limits.maxSteps" }, limits.maxSteps, max.steps) ??
    above({ rule: "max.saved", setting: "limits.maxSaved" }, limits.maxSaved, max.saved) ??
    // Without a limit a session may cost anything.
    above({ rule: "max.costUsd", setting: "limits.maxCostUsd" }, limits.maxCostUsd ?? Infinity, max.costUsd)
  );
}

const OWN_MODEL = "its model";

/** Applies the rule `models` to each model that a session may ask, its delegates' included. */
export function modelRefusal(
  { models }: Pick<OperatorPolicy, "models">,
  { summariser, fallback = [], delegate, ...own }: RunConfig,
): PolicyRefusal | undefined {
  if (models === undefined) return undefined;
  const targets: readonly (readonly [string, AskedModel | undefined])[] = [
    [OWN_MODEL, own],
    ["the summary model", summariser],
    ...fallback.map((target) => ["a fallback model", target] as const),
    ["the delegates' model", delegate?.target],
  ];
  for (const [setting, target] of targets) {
    if (target === undefined) continue;
    const named = ["model", "models"].find((field) => target.body?.[field] !== undefined);
    if (named !== undefined)
      return { rule: "models", why: `models.${target.model}.body.${named} would ask for another model` };
    const refusal = outside({ rule: "models", setting }, askedName(target), models, fitsPattern);
    if (refusal !== undefined) return { ...refusal, ...(setting === OWN_MODEL ? { isOwnModel: true } : {}) };
  }
  return undefined;
}

type AskedModel = Pick<ModelTarget, "model" | "modelName" | "provider" | "body">;

/** The host or provider that really gets the request: a provider's name proves nothing if a session sets its address. */
function askedName({ model, modelName, provider }: AskedModel): string {
  const full = fullModelName(model);
  if (provider === undefined) return full;
  const place =
    provider.baseUrl === undefined || provider.baseUrl === usualAddress(provider.name)
      ? provider.name
      : new URL(provider.baseUrl).host;
  return `${place}/${modelName ?? full.slice(full.indexOf("/") + 1)}`;
}

function mcpRefusal({ mcp }: OperatorPolicy, { mcpServers = {} }: RunConfig): PolicyRefusal | undefined {
  for (const [name, { url }] of Object.entries(mcpServers)) {
    const asked = url === undefined ? name : new URL(url).host;
    const refusal = outside({ rule: "mcp", setting: `mcpServers.${name}` }, asked, mcp, fitsPattern);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function precedenceRefusal(
  { tenants, max }: OperatorPolicy,
  { priority = USUAL_PRIORITY, tenant = "not set" }: Pick<RunConfig, "priority" | "tenant">,
): PolicyRefusal | undefined {
  const refusal = outside({ rule: "tenants", setting: "tenant" }, tenant, tenants, fitsPattern);
  if (refusal !== undefined) return refusal;
  if (max.priority === undefined || priority >= max.priority) return undefined;
  const may = max.priority === LAST_PRIORITY ? `${LAST_PRIORITY}` : `${max.priority} to ${LAST_PRIORITY}`;
  return { rule: "max.priority", why: `priority is ${priority}, and may be ${may}: 1 goes first` };
}

/** A rule's name in the policy file, and the setting that it limits. */
interface Limited {
  readonly rule: string;
  readonly setting: string;
}

function outside(
  { rule, setting }: Limited,
  asked: string,
  allowed: readonly string[] | undefined,
  fits: (pattern: string, asked: string) => boolean = (name, text) => name === text,
): PolicyRefusal | undefined {
  if (allowed === undefined || allowed.some((pattern) => fits(pattern, asked))) return undefined;
  return { rule, why: `${setting} is ${asked}, and may be: ${allowed.join(", ") || "nothing"}` };
}

/** @param asked a number, or a size such as `2g` */
function above<Amount extends string | number>(
  { rule, setting }: Limited,
  asked: Amount,
  most: Amount | undefined,
): PolicyRefusal | undefined {
  if (most === undefined || amountOf(asked) <= amountOf(most)) return undefined;
  return { rule, why: `${setting} is ${asked === Infinity ? "not set" : asked}, and may be ${most} at most` };
}

const amountOf = (value: string | number) => (typeof value === "number" ? value : megabytes(value));

function addressRefusal(
  allowed: readonly string[] | undefined,
  sandbox: RunConfig["sandbox"],
): PolicyRefusal | undefined {
  if (allowed === undefined) return undefined;
  const prefixes = allowed.filter(isPrefix).map(toPrefix);
  const opened = sandbox.allow.find((text) => {
    const asked = toPrefix(text);
    return !prefixes.some(
      (prefix) =>
        prefix.version === asked.version &&
        prefix.length <= asked.length &&
        containedIn([prefix])(asked.address),
    );
  });
  if (opened !== undefined) return outside({ rule: "allow", setting: "sandbox.allow" }, opened, allowed);
  const isAllowed = (host: string) =>
    allowed.includes(host) || (isIP(host) !== 0 && containedIn(prefixes)(host));
  const registry = listedRegistries(sandbox).find((host) => !isAllowed(host));
  return registry === undefined
    ? undefined
    : outside({ rule: "allow", setting: "a registry of sandbox.registries" }, registry, allowed);
}
