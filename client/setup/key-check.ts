/** Checks for `doctor` whether the hosts of keys accept them: each is asked once, as the egress proxy would ask it. */
import { request } from "node:https";
import { rootCertificates } from "node:tls";
import type { AgentConfig } from "../../activities/config/agent-config.ts";
import {
  keyRule,
  keyVariable,
  type KeyDefinition,
  valueProblem,
} from "../../activities/config/key-settings.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { workerKeys } from "../config/session-keys.ts";
import { withMachine } from "../registries/session-registries.ts";
import type { Finding } from "./sandbox-check.ts";

/** Source: doctor ends within about 10 s, and asks all hosts at once. */
const ASK_MS = 4_000;

/** One for each key that a worker has that is started from here. Never rejects for a host. */
export async function keyChecks(
  sandbox: AgentConfig["sandbox"],
  environment: Environment = process.env,
  cwd: string = process.cwd(),
): Promise<(Finding & { readonly name: string })[]> {
  const definitions = Object.entries(workerKeys(environment, cwd));
  if (definitions.length === 0) return [];
  const { certificates } = withMachine(sandbox, environment, cwd).sandbox.inherited ?? {};
  const trusted = [...rootCertificates, ...(certificates === undefined ? [] : [certificates])];
  return Promise.all(
    definitions.map(async ([name, key]) => {
      const value = environment[keyVariable(name)] ?? "";
      return { name: `key ${name}`, ...(await finding(name, key, { value, trusted })) };
    }),
  );
}

interface Asking {
  readonly value: string;
  readonly trusted: readonly string[];
}

async function finding(name: string, key: KeyDefinition, asking: Asking): Promise<Finding> {
  const problem = valueProblem(name, asking.value);
  // It matters only to sessions that name the key.
  if (problem !== undefined)
    return { ok: true, warning: true, found: problem, fix: `Set ${keyVariable(name)}.` };
  const { host, port } = keyRule(key);
  const hostPort = port === 443 ? host : `${host}:${port}`;
  try {
    const status = await ask(key, asking);
    if (status === 401 || status === 403)
      return {
        ok: false,
        found: `refused by ${hostPort} (${status})`,
        fix: `Set ${keyVariable(name)} to another value.`,
      };
    if (status < 400) return { ok: true, found: `accepted by ${hostPort} (${status})` };
    return {
      ok: true,
      warning: true,
      found: `${hostPort} answers ${status}, which neither accepts nor refuses it`,
    };
  } catch (error) {
    return { ok: false, found: `${hostPort} is unreachable: ${reasonOf(error)}` };
  }
}

/** @returns the status of one HEAD with the key */
function ask(key: KeyDefinition, { value, trusted }: Asking): Promise<number> {
  const { host, port, header, textOf } = keyRule(key);
  return new Promise((resolve, reject) => {
    const asking = request(
      {
        host,
        port,
        method: "HEAD",
        path: pathOf(key),
        headers: { [header]: textOf(value) },
        ca: [...trusted],
        agent: false,
        signal: AbortSignal.timeout(ASK_MS),
      },
      (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      },
    );
    asking.on("error", reject);
    asking.end();
  });
}

/** Of something that the key is for: up to the first name that may be anything. */
function pathOf(key: KeyDefinition): string {
  if ("registry" in key) return key.path;
  const [pattern = "/"] = "git" in key ? key.repositories.map((repository) => `/${repository}`) : key.paths;
  const isExact = !pattern.includes("*");
  if (isExact) return "git" in key ? `${pattern}/info/refs?service=git-upload-pack` : pattern;
  return pattern.slice(0, pattern.indexOf("*")).replace(/[^/]*$/, "");
}
