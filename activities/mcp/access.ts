/** The part of the worker's environment that MCP servers may use. Pure: the environment is passed in. */
import { mcpTokenVariable, type McpServer, type WorkerProgramSettings } from "../config/mcp-settings.ts";
import { McpFailure } from "./mcp.ts";

export interface McpAccess {
  /** Only the worker's variables that are meant for MCP servers. */
  readonly variables: Readonly<Record<string, string>>;
  /** Variables that every program needs. */
  readonly base?: Readonly<Record<string, string>>;
  /** Programs that the operator lets sessions use, by name. */
  readonly programs?: Readonly<Record<string, WorkerProgramSettings>> | undefined;
  /** The secret that logins are encrypted with. */
  readonly credentialsKey?: string | undefined;
}

const BASE =
  /^(PATH|HOME|USER|LANG|TMPDIR|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|GIT_SSL_CAINFO|(CURL|REQUESTS)_CA_BUNDLE)$/;

export function createMcpAccess(environment: Readonly<Record<string, string | undefined>>): McpAccess {
  const those = (fits: (name: string) => boolean) =>
    Object.fromEntries(Object.entries(environment).filter(([name, value]) => fits(name) && value)) as Record<
      string,
      string
    >;
  return {
    variables: those((name) => name.startsWith("LONGHAUL_MCP_")),
    base: those((name) => BASE.test(name)),
    credentialsKey: environment["LONGHAUL_CREDENTIALS_KEY"] || undefined,
  };
}

/**
 * A server's headers with the worker's variables filled in.
 * @throws McpFailure naming a variable that is not set
 */
export function headersFor(
  access: McpAccess,
  server: string,
  { headers = {}, auth }: Pick<McpServer, "headers" | "auth">,
): Record<string, string> {
  const { variables } = access;
  const filled: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) filled[name] = filledIn(access, value);
  if (auth === "oauth" || auth === "none") return filled;
  const variable = mcpTokenVariable(server);
  const token = auth === "token" ? required(variables, variable) : variables[variable];
  return token === undefined ? filled : { ...filled, Authorization: `Bearer ${token}` };
}

/** Replaces each `${NAME}` by the worker's variable. @throws McpFailure naming a variable that is not set */
export function filledIn({ variables }: McpAccess, text: string): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (_, variable: string) => required(variables, variable));
}

function required(variables: McpAccess["variables"], name: string): string {
  const value = variables[name];
  if (value === undefined) throw new McpFailure(`the worker's ${name} is not set`);
  return value;
}
