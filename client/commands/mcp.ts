/** `longhaul mcp`: the MCP servers of the configuration, and what one of them gives. */
import type { Command } from "commander";
import type { McpFinding } from "../setup/mcp-check.ts";
import { clientSanitizer, readSettings } from "../config/config.ts";
import { exitCodes, usageError, type ExitCode } from "../console/errors.ts";
import { oneLine, plural, tokens } from "../console/format.ts";
import type { Output, Style } from "../console/output.ts";

interface McpFlags {
  readonly config?: string;
  readonly json?: boolean;
}

export function mcpCommand(command: Command, output: Output) {
  command
    .argument("<what>", "list, or test with a server's name")
    .argument("[server]", "of test: the server, also one in the sandbox, which takes a few seconds")
    .option("--config <file>", "configuration file (default: LONGHAUL_CONFIG or ./longhaul.yaml)")
    .option("--json", "one JSON document");
  return async (what: string, server: string | undefined, flags: McpFlags): Promise<ExitCode> => {
    const { settings, environment } = readSettings(flags);
    const names = Object.keys(settings.mcpServers);
    const { checkMcpServer, listMcpServers } = await import("../setup/mcp-check.ts");
    const findings = await (async () => {
      if (what === "list" && server === undefined) return listMcpServers(settings, environment);
      if (what !== "test" || server === undefined) throw usageError("Say `mcp list`, or `mcp test NAME`.");
      if (!names.includes(server))
        throw usageError(
          `The configuration has no MCP server ${server}.`,
          names.length === 0 ? "Name it under mcpServers in longhaul.yaml." : `It has: ${names.join(", ")}.`,
        );
      return [await checkMcpServer(server, settings, environment)];
    })();
    const clean = clientSanitizer().clean;
    if (flags.json === true) output.json(findings, 2);
    else if (findings.length === 0) output.note("The configuration names no MCP server.\n");
    else
      output.result(
        `${clean(findings.map((each) => mcpText(each, output.style, what === "test")).join("\n"))}\n`,
      );
    return findings.every(({ failed }) => failed === null) ? exitCodes.completed : exitCodes.missing;
  };
}

/** @param isWhole with a line for each tool */
export function mcpText(
  { server, place, era, tools, failed }: McpFinding,
  style: Style,
  isWhole: boolean,
): string {
  if (failed !== null) return `${style("red", "✗")} ${server}  gives no tools: ${oneLine(failed, 500)}`;
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
      tool.destructive ? "calls itself destructive" : "",
    ];
    return `  ${tool.name.padEnd(width)}  ${tokens(tool.tokens).padStart(5)}  ${marks.filter((mark) => mark !== "").join(", ")}`.trimEnd();
  });
  return [head, ...lines].join("\n");
}
