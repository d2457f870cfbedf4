/** What `doctor` says of the server of the session's model: whether it has the model, and what window it really has. */
import type { RunConfig } from "../../activities/config/agent-config.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { withoutPassword } from "../../worker/connect/probe.ts";
import type { Diagnosis } from "./doctor.ts";
import { askServer, type ServedModel } from "./model-servers.ts";

type Check = Diagnosis["checks"][number];
type Asked = Pick<RunConfig, "model" | "modelName" | "contextWindow" | "api" | "provider">;

const SERVER_MS = 3_000;

/** @returns undefined where the provider has no address of its own, or not one that lists models */
export async function modelServerCheck(run: Asked, environment: Environment): Promise<Check | undefined> {
  const { provider, api } = run;
  const address = provider?.baseUrl ?? (provider?.baseUrlEnv && environment[provider.baseUrlEnv]);
  if (!address || provider?.name === "rehearsal" || (api !== "chat" && api !== "responses")) return undefined;
  const key = provider?.keyEnv && environment[provider.keyEnv];
  const models = await askServer(address, {
    timeoutMs: SERVER_MS,
    headers: key ? { authorization: `Bearer ${key}` } : {},
  });
  return serverFinding(run, withoutPassword(address), models);
}

/** Pure. */
export function serverFinding(
  { model, modelName = model, contextWindow }: Asked,
  address: string,
  models: readonly ServedModel[] | undefined,
): Check {
  const name = "Model server";
  if (models === undefined)
    return {
      name,
      ok: true,
      warning: true,
      found: `${address} lists no models: not there, or it has no /models`,
    };
  const served = models.find(({ id }) => id === modelName);
  const count = `${models.length} ${models.length === 1 ? "model" : "models"} at ${address}`;
  if (served === undefined) {
    const some = models.slice(0, 3).map(({ id }) => id);
    const fix =
      some.length === 0 ? {} : { fix: `It has ${some.join(", ")}${models.length > 3 ? ", …" : ""}.` };
    return { name, ok: true, warning: true, found: `${count}, ${modelName} is not among them`, ...fix };
  }
  if (served.window === undefined)
    return { name, ok: true, found: `${count}; it does not say the window of ${modelName}` };
  const found = `${count}; ${modelName} has a window of ${served.window} tokens`;
  if (served.window >= contextWindow) return { name, ok: true, found };
  return {
    name,
    ok: true,
    warning: true,
    found: `${found}, and ${contextWindow} are reckoned with`,
    fix: `Set models.${model}.contextWindow: ${served.window}, or start the server with a larger one.`,
  };
}
