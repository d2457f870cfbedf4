/** MCP servers as configured in `longhaul.yaml`. */
import { z } from "zod";
import { timerMs, headersSchema, httpAddress } from "./setting-values.ts";
import { fitsPattern } from "../text/lists.ts";

/** Part of tool names, of a variable's name and of a process's id. Two underscores separate a server from its tool. */
const NAME = /^(?!.*__)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?$/;

const LOCAL_KEYS = ["args", "env", "cwd"] as const;
const REMOTE_KEYS = ["headers", "auth", "scopes"] as const;

const serverSchema = z
  .strictObject({
    /** A program in the sandbox that communicates over standard input and output. */
    command: z.string().min(1).optional(),
    args: z.array(z.string()).optional(),
    env: z.record(z.string(), z.string()).optional(),
    /** Folder of the workspace in which the program runs. */
    cwd: z.string().optional(),
    /** `worker`: the program of that name in the worker's policy file. */
    where: z.enum(["sandbox", "worker"]).optional(),
    /** A server that the worker calls over HTTP. */
    url: httpAddress.optional(),
    /** The worker substitutes `${LONGHAUL_MCP_…}`, so that no session holds a secret. */
    headers: headersSchema.optional(),
    /** `token`: the worker's LONGHAUL_MCP_<NAME>_TOKEN; `oauth`: a person's login; default: the token if there is one. */
    auth: z.enum(["none", "token", "oauth"]).optional(),
    /** Scopes that a login requests; default: those that the server names. */
    scopes: z.array(z.string().min(1)).optional(),
    enabled: z.boolean().default(true),
    /** How long a call may go without progress. Source: the protocol's own libraries, 60 s. */
    timeout: timerMs.default(60_000),
    /** How long a call may take in total. Source: bash's limit, ten minutes. */
    maxTimeout: timerMs.default(600_000),
    /**
     * Time until the server has listed its tools; a program may have to be installed first. Source: users' complaints
     * about less.
     */
    startTimeout: timerMs.default(30_000),
    /** Tools to offer, by name; `!name` excludes, and the last matching pattern decides. */
    tools: z.array(z.string().min(1)).default(["*"]),
    /** Tools that change nothing: after a crash they are called again. */
    readOnly: z.array(z.string().min(1)).default([]),
    /** Trust the server's hints about which tools change nothing. */
    trustHints: z.boolean().default(false),
    /** Without this server no session starts. */
    required: z.boolean().default(false),
    /** Whether the server's tools are in every request or are found by `search_tools`; `auto`: by their size. */
    expose: z.enum(["auto", "always", "search"]).default("auto"),
  })
  .superRefine((server, context) => {
    const refuse = (key: string, message: string) =>
      context.addIssue({ code: "custom", path: [key], message });
    if (server.where === "sandbox" && server.url !== undefined)
      refuse("where", "has no effect on a server with a url");
    if (server.where === "worker") {
      for (const key of ["command", "url", ...LOCAL_KEYS, ...REMOTE_KEYS] as const)
        if (server[key] !== undefined) refuse(key, "is set by the worker: its policy file names the program");
    } else if ((server.command === undefined) === (server.url === undefined))
      context.addIssue({ code: "custom", message: "needs either a command or a url" });
    else
      for (const key of server.url === undefined ? REMOTE_KEYS : LOCAL_KEYS)
        if (server[key] !== undefined)
          refuse(key, `has no effect on a server with a ${server.url === undefined ? "command" : "url"}`);
    for (const issue of unfilled(server.headers)) refuse("headers", issue);
    if (server.maxTimeout < server.timeout) refuse("maxTimeout", "is shorter than timeout");
  });

export type McpServer = z.infer<typeof serverSchema>;

/** What is wrong with the variables named in texts. */
const unfilled = (texts: Readonly<Record<string, string>> = {}): string[] =>
  Object.values(texts)
    .flatMap((text) => [...text.matchAll(/\$\{([^}]*)\}/g)])
    .filter(([, variable = ""]) => !/^LONGHAUL_MCP_\w+$/.test(variable))
    .map(
      ([, variable = ""]) =>
        `\${${variable}}: the worker only fills in variables whose names begin with LONGHAUL_MCP_`,
    );

/** A program on the worker, as its operator's policy file names it. */
export const workerProgramSchema = z
  .strictObject({
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    /** Variables besides PATH and the like; `${LONGHAUL_MCP_…}` is substituted. */
    env: z.record(z.string(), z.string()).default({}),
    cwd: z.string().optional(),
  })
  .superRefine(({ env }, context) => {
    for (const message of unfilled(env)) context.addIssue({ code: "custom", path: ["env"], message });
  });
export type WorkerProgramSettings = z.infer<typeof workerProgramSchema>;

export const mcpServersSchema = z.record(z.string(), serverSchema).superRefine((servers, context) => {
  const variables = new Set<string>();
  for (const name of Object.keys(servers)) {
    const issue = (message: string) => context.addIssue({ code: "custom", path: [name], message });
    if (!NAME.test(name))
      issue("the name of a server: 1 to 32 letters, digits, - and _, and no two underscores in a row");
    if (variables.has(mcpTokenVariable(name)))
      issue("differs from another server's name only in case, - or _");
    variables.add(mcpTokenVariable(name));
  }
});

/** The worker's variable with a server's token. */
export const mcpTokenVariable = (server: string): string =>
  `LONGHAUL_MCP_${server.toUpperCase().replaceAll("-", "_")}_TOKEN`;

/** Whether the worker talks to the server, rather than the sandbox. */
export const isRemote = ({ url, where }: Pick<McpServer, "url" | "where">): boolean =>
  url !== undefined || where === "worker";

/** Whether the last pattern that matches a name includes it; `*` matches any characters, `!` excludes. */
export function isListed(patterns: readonly string[], name: string): boolean {
  const last = patterns.findLast((pattern) => fitsPattern(pattern.replace(/^!/, ""), name));
  return last !== undefined && !last.startsWith("!");
}
