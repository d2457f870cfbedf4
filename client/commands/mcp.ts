/** `longhaul mcp`: the configured MCP servers, and the tools of one of them. */
import type { Command } from "commander";
import type { McpFinding, LoginTarget } from "../setup/mcp-servers.ts";
import { withServices } from "../sessions/with-session.ts";
import { clientSanitizer, readSettings } from "../config/config.ts";
import { exitCodes, missing, usageError, type ExitCode } from "../console/errors.ts";
import { harmlessLine, shellWord } from "../console/format.ts";
import { plural, tokens } from "../../activities/text/format.ts";
import type { Output, Style } from "../console/output.ts";
import type { Environment } from "../../activities/config/providers.ts";

interface McpFlags {
  readonly config?: string;
  readonly json?: boolean;
}

export function mcpCommand(command: Command, output: Output) {
  command
    .argument("<what>", "list; or test, login, logout with a server's name")
    .argument("[server]", "the server; test starts one that runs in the sandbox, which takes a few seconds")
    .option("--config <file>", "configuration file (default: LONGHAUL_CONFIG or ./longhaul.yaml)")
    .option("--json", "one JSON document");
  return async (action: string, server: string | undefined, flags: McpFlags): Promise<ExitCode> => {
    const loaded = readSettings(flags);
    if (action === "list" && server === undefined) {
      const { listMcpServers } = await import("../setup/mcp-servers.ts");
      return showFindings(await listMcpServers(loaded.settings, loaded.environment), output, flags, false);
    }
    if (server === undefined || !["test", "login", "logout"].includes(action))
      throw usageError("Write `mcp list`, `mcp test NAME`, `mcp login NAME` or `mcp logout NAME`.");
    const names = Object.keys(loaded.settings.mcpServers);
    const settings = loaded.settings.mcpServers[server];
    if (settings === undefined)
      throw usageError(
        `The configuration has no MCP server ${server}.`,
        names.length === 0 ? "Name it under mcpServers in longhaul.yaml." : `It has: ${names.join(", ")}.`,
      );
    if (action === "test") {
      const { checkMcpServer } = await import("../setup/mcp-servers.ts");
      return showFindings(
        [await checkMcpServer(server, loaded.settings, loaded.environment)],
        output,
        flags,
        true,
      );
    }
    if (settings.auth !== "oauth" || settings.url === undefined)
      throw usageError(
        `The server ${server} is not configured for a login.`,
        `For a server over HTTP that requires one, set mcpServers.${server}.auth: oauth`,
      );
    const target = { name: server, url: settings.url, scopes: settings.scopes };
    return action === "login" ? login(target, loaded.environment, output) : logout(target, output);
  };
}

async function login(target: LoginTarget, environment: Environment, output: Output): Promise<ExitCode> {
  const { loginToMcp } = await import("../setup/mcp-servers.ts");
  const secret = environment["LONGHAUL_CREDENTIALS_KEY"] || undefined;
  try {
    await withServices(({ store }) =>
      loginToMcp(target, { store, secret }, (address) =>
        output.note(`Open this address in your browser, on this machine:\n${address}\n`),
      ),
    );
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "McpFailure") throw error;
    throw missing(
      `Logging in to ${target.name} failed: ${error.message}.`,
      `Try it again: longhaul mcp login ${shellWord(target.name)}`,
      error,
    );
  }
  output.note(`Logged in to ${target.name}.\n`);
  return exitCodes.completed;
}

async function logout(target: LoginTarget, output: Output): Promise<ExitCode> {
  const { logoutOfMcp } = await import("../setup/mcp-servers.ts");
  const was = await withServices(({ store }) => logoutOfMcp(target, store));
  output.note(
    was
      ? `Logged out of ${target.name}: its tokens were deleted here.\n`
      : `There was no login to ${target.name}.\n`,
  );
  return exitCodes.completed;
}

function showFindings(
  findings: readonly McpFinding[],
  output: Output,
  flags: McpFlags,
  isWhole: boolean,
): ExitCode {
  const { clean } = clientSanitizer();
  if (flags.json === true) output.json(findings, 2);
  else if (findings.length === 0) output.note("The configuration names no MCP server.\n");
  else
    output.result(
      `${clean(findings.map((finding) => mcpText(finding, output.style, isWhole)).join("\n"))}\n`,
    );
  return findings.every(({ failed }) => failed === null) ? exitCodes.completed : exitCodes.missing;
}

/** @param isWhole with a line for each tool */
export function mcpText(
  { server, place, era, tools, failed }: McpFinding,
  style: Style,
  isWhole: boolean,
): string {
  if (failed !== null)
    return `${style("red", "✗")} ${server}  provides no tools: ${harmlessLine(failed, 500)}`;
  if (era === null)
    return `  ${server}  a program in the sandbox: \`mcp test ${server}\` starts it and lists its tools`;
  const sum = tools.reduce((total, tool) => total + tool.tokens, 0);
  const where = place === "http" ? "over HTTP" : "in the sandbox";
  const head = `${style("green", "✓")} ${server}  ${plural(tools.length, "tool")}, ${tokens(sum)} tokens of descriptions; ${where}, revision ${era}`;
  if (!isWhole) return head;
  const width = Math.max(0, ...tools.map(({ name }) => name.length));
  const lines = tools.map((tool) => {
    const marks = [
      tool.readOnly ? "may be repeated" : "",
      tool.destructive ? "described as destructive" : "",
    ];
    return `  ${tool.name.padEnd(width)}  ${tokens(tool.tokens).padStart(5)}  ${marks.filter((mark) => mark !== "").join(", ")}`.trimEnd();
  });
  return [head, ...lines].join("\n");
}
