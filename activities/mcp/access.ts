/** What MCP servers may be told of the worker's environment. Pure: the environment is handed in. */
import { mcpTokenVariable } from "../config/mcp-settings.ts";
import { McpFailure } from "./mcp-failure.ts";

export interface McpAccess {
  /** The worker's variables for MCP servers, and no others. */
  readonly variables: Readonly<Record<string, string>>;
  /** What logins are encrypted with. */
  readonly credentialsKey?: string | undefined;
}

export function mcpAccessOf(environment: Readonly<Record<string, string | undefined>>): McpAccess {
  const own = Object.entries(environment).filter(
    ([name, value]) => name.startsWith("LONGHAUL_MCP_") && value,
  );
  return {
    variables: Object.fromEntries(own) as Record<string, string>,
    credentialsKey: environment["LONGHAUL_CREDENTIALS_KEY"] || undefined,
  };
}

/**
 * A server's headers with what the worker fills in.
 * @throws McpFailure that names a variable which is not set
 */
export function headersFor(
  { variables }: McpAccess,
  server: string,
  {
    headers = {},
    auth,
  }: { readonly headers?: Record<string, string> | undefined; readonly auth?: string | undefined },
): Record<string, string> {
  const filled = Object.entries(headers).map(([name, value]) => [
    name,
    value.replaceAll(/\$\{(\w+)\}/g, (_, variable: string) => required(variables, variable)),
  ]);
  const variable = mcpTokenVariable(server);
  if (auth === "oauth") return Object.fromEntries(filled) as Record<string, string>;
  const token = auth === "token" ? required(variables, variable) : variables[variable];
  return {
    ...(Object.fromEntries(filled) as Record<string, string>),
    ...(token === undefined || auth === "none" ? {} : { Authorization: `Bearer ${token}` }),
  };
}

function required(variables: McpAccess["variables"], name: string): string {
  const value = variables[name];
  if (value === undefined) throw new McpFailure(`the worker's ${name} is not set`);
  return value;
}
