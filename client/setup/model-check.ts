/** What `doctor` reports about the model's server: whether it has the model, and the actual size of its window. */
import type { ModelTarget, Provider } from "../../activities/config/model-target.ts";
import { type ModelFacts, moreRoom, type ServedWindow, tooLittle } from "../../activities/config/models.ts";
import { type Environment, missingVariables } from "../../activities/config/providers.ts";
import { withoutPassword } from "../../temporal/probe.ts";
import type { ModelChoice } from "../config/config.ts";
import { listNames } from "../console/format.ts";
import type { Finding } from "./sandbox-check.ts";
import { askModel, findLocalServers, servedAs, type ServedModel, serverNote } from "./model-servers.ts";
import { Identities } from "../../activities/model/identity/identities.ts";
import { ModelError } from "../../activities/model/model.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { secretsOf } from "../../activities/redaction/secret-values.ts";
import { readPolicy } from "../../worker/read-policy.ts";
import { WrongSettings } from "../../temporal/service-missing.ts";

type Check = Finding & { readonly name: string };
type CheckedModel = Pick<
  ModelTarget,
  "model" | "modelName" | "contextWindow" | "maxOutput" | "api" | "provider" | "noTools"
>;

const SERVER_MS = 3_000;

/** The model in use, and whether its key is set. @param rehearsalUrl address of the rehearsal model */
export function modelFinding(
  { target, hints, isKeyElsewhere }: ModelChoice,
  environment: Environment,
  rehearsalUrl: string | undefined,
): Check {
  const name = "Model";
  const { provider } = target;
  if (hints !== undefined || provider.name === "rehearsal") {
    const atAddress = rehearsalUrl === undefined ? "" : ` at ${rehearsalUrl}`;
    const why = hints === undefined ? target.model : "no model is chosen and OPENAI_API_KEY is not set";
    const report = `${why}: the rehearsal model plays a written script${atAddress}`;
    return hints === undefined || hints.length === 0
      ? { name, ok: true, found: report }
      : { name, ok: true, warning: true, found: report, fix: hints.join(" ") };
  }
  const address = addressOf(provider, environment);
  const modelText =
    address === undefined ? target.model : `${target.model}, asked at ${withoutPassword(address)}`;
  const lacks = missingVariables(provider, environment);
  if (lacks.length === 0) return { name, ok: true, found: `${modelText}; ${keyText(provider, environment)}` };
  if (isKeyElsewhere) return { name, ok: true, found: `${modelText}; the workers have the key` };
  const names = lacks.join(" and ");
  return {
    name,
    ok: false,
    found: `${modelText}; ${names} ${lacks.length === 1 ? "is" : "are"} not set`,
    fix: `Set ${names}.`,
  };
}

function keyText({ keyEnv, headersEnv = {}, preset }: Provider, environment: Environment): string {
  if (preset !== undefined && keyEnv === undefined) return "asked with the worker's own identity";
  const [set] = [keyEnv, ...Object.values(headersEnv)].filter((name) => name && environment[name]);
  return set === undefined ? "it needs no key" : `${set} is set`;
}

const addressOf = ({ baseUrl, baseUrlEnv }: Provider, environment: Environment): string | undefined =>
  baseUrl ?? ((baseUrlEnv && environment[baseUrlEnv]) || undefined);

/** The servers of this machine, where no model is chosen. */
export async function localServerChecks(): Promise<Check[]> {
  const servers = await findLocalServers();
  return servers.map((server) => ({ name: "Model server", ok: true, found: serverNote(server) }));
}

/** @returns undefined if the provider has no address of its own that lists models */
export async function modelServerCheck(
  run: CheckedModel,
  environment: Environment = process.env,
): Promise<Check | undefined> {
  const server = serverOf(run, environment);
  if (server === undefined) return undefined;
  const { address, headers } = server;
  const query = { name: run.modelName, provider: run.provider.name };
  const { models } = await askModel(address, query, { timeoutMs: SERVER_MS, headers });
  return serverFinding(run, withoutPassword(address), models);
}

/** The person waits this long at most before each start with such a model. */
const START_MS = 1_000;

/** Asks servers in parallel for the windows of models that are not in the catalogue, and whether they call tools; omits servers that do not answer. */
export async function askWindows(
  targets: readonly CheckedModel[],
  environment: Environment = process.env,
): Promise<NonNullable<ModelFacts["served"]>> {
  const windows = targets.map(async (target): Promise<[string, ServedWindow][]> => {
    const server = serverOf(target, environment);
    if (server === undefined) return [];
    const { address, headers } = server;
    const { served } = await askModel(
      address,
      { name: target.modelName, provider: target.provider.name },
      { timeoutMs: START_MS, headers },
    );
    if (served === undefined) return [];
    const { contextWindow, most, tools, runner } = served;
    if (contextWindow === undefined && most === undefined && tools === undefined) return [];
    const from = withoutPassword(address);
    return [[target.model, { contextWindow, most, tools, runner, from }]];
  });
  return Object.fromEntries((await Promise.all(windows)).flat());
}

function serverOf({ provider, api }: CheckedModel, environment: Environment) {
  const address = addressOf(provider, environment);
  // A cloud lists models only for those who have a token.
  if (!address || provider.name === "rehearsal" || provider.preset !== undefined) return undefined;
  if (api !== "chat" && api !== "responses") return undefined;
  const key = provider.keyEnv && environment[provider.keyEnv];
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {};
  return { address, headers };
}

/** Whether two names differ only by a prefix. */
const isAlike = (one: string, other: string): boolean =>
  one.endsWith(`/${other}`) || other.endsWith(`/${one}`);

/** What `doctor` says of the model at its server: whether it is there, calls tools, and has the window that is counted with. */
export function serverFinding(
  checked: CheckedModel,
  address: string,
  models: readonly ServedModel[] | undefined,
): Check {
  const { model, modelName, provider, noTools } = checked;
  const name = "Model server";
  const warning = (report: string, fix?: string) => ({
    name,
    ok: true,
    warning: true as const,
    found: report,
    fix,
  });
  if (models === undefined)
    return warning(`${address} lists no models: no server answers there, or it has no /models`);
  const served = servedAs(models, modelName, provider.name);
  const count = `${models.length} ${models.length === 1 ? "model" : "models"} at ${address}`;
  if (served === undefined) {
    const report = `${count}, ${modelName} is not among them`;
    const alike = models.find(({ id }) => isAlike(id, modelName));
    // With OPENAI_BASE_URL the model's name is sent unchanged.
    const prefix = provider.name === "openai" ? "" : `${provider.name}/`;
    if (alike !== undefined)
      return warning(report, `The server calls it ${alike.id}: --model ${prefix}${alike.id}.`);
    return warning(
      report,
      models.length === 0 ? undefined : `It has ${listNames(models.map(({ id }) => id))}.`,
    );
  }
  if (served.tools === false && noTools !== true)
    return warning(
      `${count}; ${modelName} cannot call tools, as its server says: it is refused`,
      `Choose another model, or set models.${model}.tools: none to use it without tools.`,
    );
  const { found: report, fix, isEnough } = windowFinding(checked, served);
  return isEnough ? { name, ok: true, found: `${count}${report}` } : warning(`${count}${report}`, fix);
}

/** The window that the server gives a model, beside the one that is counted with. */
function windowFinding(
  { model, modelName, contextWindow, maxOutput, noTools }: CheckedModel,
  served: ServedModel,
): { readonly found: string; readonly fix?: string; readonly isEnough?: true } {
  const { contextWindow: servedWindow, most, runner, slots } = served;
  if (servedWindow === undefined) {
    const supports = most === undefined ? "" : `; ${modelName} supports ${most} tokens`;
    const report = `${supports}; it does not report the window of ${modelName}`;
    if (runner === undefined) return { found: report, isEnough: true };
    return { found: `${report} before it has loaded it`, fix: moreRoom(runner, contextWindow) };
  }
  // Its API does not tell which; source: llama-server b11434, `kv_unified`.
  const shared =
    slots === undefined
      ? ""
      : `, for ${slots} requests at once: each slot has that with --parallel ${slots}, but all of them share it with --kv-unified or without --parallel`;
  const report = `; ${modelName} has a window of ${servedWindow} tokens${shared}`;
  const inUse = Math.min(servedWindow, contextWindow);
  const [little] = tooLittle(model, { contextWindow: inUse, maxOutput }, served);
  if (inUse === contextWindow && (little === undefined || noTools === true))
    return { found: report, isEnough: true };
  const set = `Set models.${model}.contextWindow: ${servedWindow}, or start the server with a larger one.`;
  return {
    found: inUse < contextWindow ? `${report}, but ${contextWindow} are assumed` : report,
    fix: little ?? (runner === undefined ? set : moreRoom(runner, contextWindow)),
  };
}

const MAX_MS = 10_000;

/** @param options for tests: where optional packages come from */
export async function identityChecks(
  environment: Environment = process.env,
  options: { readonly load?: (name: string) => Promise<unknown> } = {},
): Promise<Check[]> {
  const identities = identitiesIn(environment, options);
  if (identities === undefined) return [];
  const { clean } = createSanitizer(secretsOf(environment), identities.issued);
  identities.maskWith(clean);
  return Promise.all(
    identities.names.map(async (provider) => {
      const name = `identity at ${provider}`;
      try {
        const who = await identities.of(provider)?.who(AbortSignal.timeout(MAX_MS));
        return { name, ok: true, found: clean(who ?? "none") };
      } catch (error) {
        const report = error instanceof ModelError ? error.message : clean(String(error));
        return { name, ok: false, found: report };
      }
    }),
  );
}

/** Undefined without a policy file, or with a wrong one, which has its own check. */
function identitiesIn(environment: Environment, options: object): Identities | undefined {
  const file = environment["LONGHAUL_POLICY"];
  if (!file) return undefined;
  try {
    return new Identities({ providers: readPolicy(file).providers ?? {}, environment, ...options });
  } catch (error) {
    if (error instanceof WrongSettings) return undefined;
    throw error;
  }
}
