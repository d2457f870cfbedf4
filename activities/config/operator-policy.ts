/** What a worker's operator allows sessions to use, whatever their clients request; and its providers. */
import { isIP } from "node:net";
import { z } from "zod";
import type { Precedence } from "../contract/run-policy.ts";
import type { RunConfig } from "./agent-config.ts";
import { containedIn, isPrefix, toPrefix } from "./addresses.ts";
import { modelRateSchema, type ModelRate, type ModelTarget, providerConfigSchema } from "./model-target.ts";
import { usualAddress } from "./providers.ts";
import { LAST_PRIORITY, prioritySchema, USUAL_PRIORITY } from "./precedence.ts";
import { listedRegistries } from "./registry-settings.ts";
import { workerProgramSchema } from "./mcp-settings.ts";
import { NETWORKS } from "./sandbox-settings.ts";
import { sandboxServices, withServicesSum } from "./service-settings.ts";
import { sizeSchema, megabytes } from "./setting-values.ts";
import { fitsPattern } from "../text/lists.ts";
import { lackingFields } from "./presets.ts";
import { moneyRules } from "./money-budgets.ts";
import { personSchema } from "./commit-settings.ts";
import { keysSchema } from "./key-settings.ts";

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;
/** `90s`, `10m` or `1h`, in ms. */
const life = z
  .string()
  .regex(/^[1-9]\d{0,5}[smh]$/, "a time such as 90s, 10m or 1h")
  .transform((text) => Number(text.slice(0, -1)) * UNIT_MS[text.slice(-1) as keyof typeof UNIT_MS]);

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of a variable");

const authSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("aws-bedrock"), profile: z.string().min(1).optional() }),
  z.strictObject({ kind: z.literal("google") }),
  z.strictObject({ kind: z.literal("azure"), scope: z.string().min(1).optional() }),
  z.strictObject({
    kind: z.literal("command"),
    /** A program and its arguments; no shell reads them. */
    command: z.array(z.string()).min(1),
    /** How long a token is good for if the command does not print it. */
    for: life.default(600_000),
    /** Variables of the worker that the command gets besides PATH, HOME and the like. */
    pass: z.array(variable).default([]),
  }),
]);
export type Auth = z.infer<typeof authSchema>;

/** `providers.<name>` of the policy file. */
export const operatorProviderSchema = providerConfigSchema
  .extend({ auth: authSchema.optional() })
  .superRefine((provider, context) => {
    const issue = (message: string) => context.addIssue({ code: "custom", message });
    const { baseUrl, auth, keyEnv, region } = provider;
    if (provider.preset !== undefined && baseUrl === undefined)
      for (const field of lackingFields(provider)) issue(`the preset ${provider.preset} needs ${field}`);
    if (provider.preset === undefined && auth !== undefined && baseUrl === undefined)
      issue("set a preset or baseUrl: a token is sent to that address only");
    if (auth !== undefined && keyEnv !== undefined) issue("set auth or keyEnv, not both");
    if (auth?.kind === "aws-bedrock" && region === undefined) issue("a token of aws-bedrock needs region");
  });
export type OperatorProvider = z.infer<typeof operatorProviderSchema>;

const names = z.array(z.string().min(1));
const days = z.number().positive();

/** The file that `LONGHAUL_POLICY` names. An absent rule allows everything. */
export const operatorPolicySchema = z.strictObject({
  /** Images by name or digest; `*` matches any characters. */
  images: names.optional(),
  /** Names of OCI runtimes; `default` is the engine's own. */
  runtimes: names.optional(),
  networks: z.array(z.enum(NETWORKS)).optional(),
  /**
   * Running containers of others, by the names that sessions give (`--container`). Absent: none while a rule on images, runtimes,
   * networks or limits is set, since those cannot be held there; else any.
   */
  containers: names.optional(),
  /** Whether images may be built from a workspace's Dockerfile; the images that it takes come under `images`. */
  builds: z.boolean().optional(),
  /** Host names that `sandbox.domains` may list, `*` for any text; with this rule nobody can be asked for further ones. */
  domains: names.optional(),
  /** Absent: only `required` while a rule on networks is set, since the other may let a sandbox reach more. */
  guard: z.array(z.enum(["required", "best-effort"])).optional(),
  /** Repositories as `host/path`, or `file:///path` for those on the worker's disk; `*` for any text. */
  remotes: names.optional(),
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
      /** The longest wait that a model may begin, in hours: `limits.maxWait`. */
      waitHours: z.number().positive().optional(),
      /** The most urgent priority that a session may have: 1 goes first. */
      priority: prioritySchema.optional(),
      /** Most sessions of one owner that run or wait at once; those without an owner count as one person's. */
      sessionsPerUser: z.number().int().positive().optional(),
    })
    .default({}),
  ...moneyRules,
  /** By models as `provider/model`, `*` for any text; the first match applies. A session may set stricter limits. */
  rates: z.record(z.string(), modelRateSchema).default({}),
  /** Programs on the worker that sessions may use as MCP servers, by the names that sessions use. */
  mcpServers: z.record(z.string(), workerProgramSchema).optional(),
  /** Providers as this worker reaches them, whatever a session says of them: with an identity, or at an address of its own. */
  providers: z.record(z.string(), operatorProviderSchema).optional(),
  /** Who the sessions' owners are in commits and on forges. */
  people: z.record(z.string(), personSchema).optional(),
  /** Secrets that sandboxes can use and not read; sessions name them in `sandbox.keys`. */
  keys: keysSchema.optional(),
  /** Counted from a session's end. Absent: nothing is deleted automatically. */
  retention: z.strictObject({ sessionsDays: days.optional(), outputsDays: days.optional() }).default({}),
});
export type OperatorPolicy = z.infer<typeof operatorPolicySchema>;

/** The operator's limits on a model over all sessions; undefined means unlimited. @param model `provider/model` */
export function rateOf(policy: OperatorPolicy | undefined, model: string): ModelRate | undefined {
  return Object.entries(policy?.rates ?? {}).find(([pattern]) => fitsPattern(pattern, model))?.[1];
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
  const { max } = policy;
  return (
    (sandbox.container === undefined
      ? sandboxRefusal(policy, sandbox)
      : containerRefusal(policy, sandbox.container.name)) ??
    remoteRefusal(policy, config) ??
    modelRefusal(policy, config) ??
    mcpRefusal(policy, config) ??
    precedenceRefusal(policy, config) ??
    precedenceRefusal(policy, {
      priority: begun.priorityKey ?? config.priority,
      tenant: begun.fairnessKey ?? config.tenant,
    }) ??
    above({ rule: "max.steps", setting: "limits.maxSteps" }, limits.maxSteps, max.steps) ??
    above(
      { rule: "max.waitHours", setting: "limits.maxWait" },
      limits.maxWait,
      max.waitHours === undefined ? undefined : max.waitHours * 3_600_000,
    ) ??
    above({ rule: "max.saved", setting: "limits.maxSaved" }, limits.maxSaved, max.saved) ??
    // Without a limit a session may cost anything.
    above({ rule: "max.costUsd", setting: "limits.maxCostUsd" }, limits.maxCostUsd ?? Infinity, max.costUsd)
  );
}

/** What will run, and what it may reach and use. */
function sandboxRefusal(policy: OperatorPolicy, sandbox: RunConfig["sandbox"]): PolicyRefusal | undefined {
  const { runtimes, networks, guard, builds, domains, allow, max } = policy;
  const isLax = sandbox.guard === "best-effort" && sandbox.network !== "none";
  return (
    imageRefusal(policy, sandbox.image, "sandbox.image") ??
    (sandbox.build !== undefined && builds === false
      ? { rule: "builds", why: "sandbox.build is set, and no image may be built" }
      : undefined) ??
    outside({ rule: "runtimes", setting: "sandbox.runtime" }, sandbox.runtime ?? "default", runtimes) ??
    outside({ rule: "networks", setting: "sandbox.network" }, sandbox.network, networks) ??
    (isLax && guard === undefined && networks !== undefined
      ? { rule: "networks", why: "sandbox.guard is best-effort, so it could not be held" }
      : undefined) ??
    outside({ rule: "guard", setting: "sandbox.guard" }, sandbox.guard, guard) ??
    (sandbox.network === "listed" ? domainRefusal(domains, sandbox) : undefined) ??
    addressRefusal(allow, sandbox) ??
    above({ rule: "max.memory", setting: "sandbox.memory" }, sandbox.memory, max.memory) ??
    above({ rule: "max.cpus", setting: "sandbox.cpus" }, sandbox.cpus, max.cpus) ??
    servicesRefusal(policy, sandbox) ??
    above({ rule: "max.pids", setting: "sandbox.pids" }, sandbox.pids, max.pids) ??
    above({ rule: "max.disk", setting: "sandbox.disk" }, sandbox.disk, max.disk)
  );
}

/** Services run beside the sandbox, and count with it. */
function servicesRefusal(
  { images, max }: OperatorPolicy,
  sandbox: RunConfig["sandbox"],
): PolicyRefusal | undefined {
  for (const [name, { image }] of Object.entries(sandboxServices(sandbox))) {
    const refusal = imageRefusal({ images }, image, `sandbox.services.${name}.image`);
    if (refusal !== undefined) return refusal;
  }
  const { memoryMb, cpus } = withServicesSum(sandbox);
  return (
    above(
      { rule: "max.memory", setting: "sandbox.memory with that of sandbox.services" },
      `${memoryMb}m`,
      max.memory,
    ) ?? above({ rule: "max.cpus", setting: "sandbox.cpus with those of sandbox.services" }, cpus, max.cpus)
  );
}

/** @param setting what names the image */
export const imageRefusal = (
  { images }: Pick<OperatorPolicy, "images">,
  image: string,
  setting: string,
): PolicyRefusal | undefined => outside({ rule: "images", setting }, image, images, fitsPattern);

/** Another person's container is used as it is: no rule on images, networks or limits holds in it. */
function containerRefusal(policy: OperatorPolicy, name: string): PolicyRefusal | undefined {
  const { containers, images, runtimes, networks, domains, guard, allow, max } = policy;
  if (containers !== undefined)
    return outside({ rule: "containers", setting: "the container" }, name, containers, fitsPattern);
  const rules = { images, runtimes, networks, domains, guard, allow };
  const limits = { memory: max.memory, cpus: max.cpus, pids: max.pids, disk: max.disk };
  const set = [
    ...Object.entries(rules).filter(([, rule]) => rule !== undefined),
    ...Object.entries(limits).flatMap(([limit, most]) => (most === undefined ? [] : [[`max.${limit}`]])),
  ][0]?.[0];
  if (typeof set !== "string") return undefined;
  return {
    rule: "containers",
    why: `it would work in the container ${name}, where the rule ${set} cannot be held`,
  };
}

function domainRefusal(
  domains: readonly string[] | undefined,
  { domains: asked, askForDomains }: RunConfig["sandbox"],
): PolicyRefusal | undefined {
  if (domains === undefined) return undefined;
  for (const domain of asked) {
    const refusal = outside({ rule: "domains", setting: "sandbox.domains" }, domain, domains, fitsPattern);
    if (refusal !== undefined) return refusal;
  }
  return askForDomains === true && !domains.includes("*")
    ? { rule: "domains", why: "sandbox.askForDomains would let a person open other hosts" }
    : undefined;
}

function remoteRefusal({ remotes }: OperatorPolicy, { repository }: RunConfig): PolicyRefusal | undefined {
  if (remotes === undefined || repository === undefined) return undefined;
  for (const url of [repository.url, ...repository.also]) {
    const limited = { rule: "remotes", setting: "the repository" };
    // Another way of writing a path must not pass for it.
    if (/(^|[/:])\.{1,2}(\/|$)|%2e|%2f|\\/i.test(url))
      return { rule: limited.rule, why: `${url} is not a plain path` };
    const refusal = outside(limited, remoteName(url), remotes, fitsPattern);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** `host/path` of an address in any of git's forms, the host in lower case; `file:///path` for one on the worker's disk. */
function remoteName(url: string): string {
  if (/^file:/i.test(url)) return url.replace(/^file:/i, "file:");
  const withoutScheme = url.replace(/^[a-z+]+:\/\//i, "").replace(/^[^@/]*@/, "");
  return withoutScheme.replace(/^([^/:]+):(?!\d+\/)/, "$1/").replace(/^[^/]*/, (host) => host.toLowerCase());
}

const OWN_MODEL = "its model";

/** Applies the rule `models` to each model that a session may ask, its delegates' included. */
export function modelRefusal(
  { models, providers = {} }: Pick<OperatorPolicy, "models" | "providers">,
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
    const refusal = outside(
      { rule: "models", setting },
      askedName(target, Object.keys(providers)),
      models,
      fitsPattern,
    );
    if (refusal !== undefined) return { ...refusal, ...(setting === OWN_MODEL ? { isOwnModel: true } : {}) };
  }
  return undefined;
}

type AskedModel = Pick<ModelTarget, "model" | "modelName" | "provider" | "body">;

/**
 * The host or provider that really gets the request: a provider's name proves nothing if a session sets its address.
 * @param ours providers whose address the operator has set, so that the session's does not count
 */
function askedName({ modelName, provider }: AskedModel, ours: readonly string[]): string {
  const server =
    provider.baseUrl === undefined ||
    provider.baseUrl === usualAddress(provider.name) ||
    ours.includes(provider.name)
      ? provider.name
      : new URL(provider.baseUrl).host;
  return `${server}/${modelName}`;
}

function mcpRefusal({ mcp }: OperatorPolicy, { mcpServers = {} }: RunConfig): PolicyRefusal | undefined {
  for (const [name, { url }] of Object.entries(mcpServers)) {
    const serverName = url === undefined ? name : new URL(url).host;
    const refusal = outside({ rule: "mcp", setting: `mcpServers.${name}` }, serverName, mcp, fitsPattern);
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

function addressRefusal(
  allowed: readonly string[] | undefined,
  sandbox: RunConfig["sandbox"],
): PolicyRefusal | undefined {
  if (allowed === undefined) return undefined;
  const prefixes = allowed.filter(isPrefix).map(toPrefix);
  const opened = sandbox.allow.find((text) => {
    const askedPrefix = toPrefix(text);
    return !prefixes.some(
      (prefix) =>
        prefix.version === askedPrefix.version &&
        prefix.length <= askedPrefix.length &&
        containedIn([prefix])(askedPrefix.address),
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

/** How one rule of the operator's policy compares with what a session asks for. */
export interface PolicyRefusal {
  /** The rule's name in the file, such as `max.memory`. */
  readonly rule: string;
  /** What was requested, and what is allowed. */
  readonly why: string;
  /** Only the session's own model is refused, which a person can change. */
  readonly isOwnModel?: true;
}

/** A rule's name in the policy file, and the setting that it limits. */
interface Limited {
  readonly rule: string;
  readonly setting: string;
}

/** Whether what is asked for fits none of what is allowed; an absent rule allows all. */
function outside(
  { rule, setting }: Limited,
  value: string,
  allowed: readonly string[] | undefined,
  fits: (pattern: string, text: string) => boolean = (name, text) => name === text,
): PolicyRefusal | undefined {
  if (allowed === undefined || allowed.some((pattern) => fits(pattern, value))) return undefined;
  return { rule, why: `${setting} is ${value}, and may be: ${allowed.join(", ") || "nothing"}` };
}

/** Whether it is more than the rule has. @param amount a number, or a size such as `2g` */
function above<Amount extends string | number>(
  { rule, setting }: Limited,
  amount: Amount,
  most: Amount | undefined,
): PolicyRefusal | undefined {
  if (most === undefined || amountOf(amount) <= amountOf(most)) return undefined;
  return {
    rule,
    why: `${setting} is ${amount === Infinity ? "not set" : amount}, and may be ${most} at most`,
  };
}

const amountOf = (value: string | number) => (typeof value === "number" ? value : megabytes(value));
