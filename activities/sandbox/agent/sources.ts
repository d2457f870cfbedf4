/** The Python programs that run inside containers, read from the files next to this one. */
import { readFileSync } from "node:fs";

/** In the order in which they are joined: each part may use the ones above it. */
const SUPERVISOR_PARTS = [
  "place",
  "loop",
  "output",
  "input",
  "process",
  "files",
  "folder",
  "usage",
  "disk",
  "child",
  "journal",
  "ending",
  "command",
  "client",
  "reach",
  "../egress/splice",
  "../egress/forwarder",
  "settings",
  "environment",
  "supervisor",
];

const part = (name: string): string => readFileSync(new URL(`./${name}.py`, import.meta.url), "utf8");

/**
 * The supervisor as one program. Programs are passed in the environment of the process that runs them, so that `ps` stays
 * readable.
 */
export const supervisorSource = SUPERVISOR_PARTS.map(part).join("\n\n");

/**
 * The same in a container of our own, deaf to what the image's environment says of these variables: only a container that someone
 * else owns has them from us.
 */
export function ownSupervisorSource({ hasEgress }: { readonly hasEgress: boolean }): string {
  const foreign = ["LONGHAUL_ATTACHED", "LONGHAUL_HOME", ...(hasEgress ? [] : ["LONGHAUL_EGRESS"])];
  return `import os\nfor name in ${JSON.stringify(foreign)}:\n    os.environ.pop(name, None)\n\n${supervisorSource}`;
}

/** Saves and restores a workspace; runs as a command, with the tools' rights. Its input: agent/restore.py. */
export const workspaceSource = ["folder", "tree", "tracked", "survey", "save", "restore"]
  .map(part)
  .join("\n\n");

/** Commits a session's uncommitted work, and finds what else there is; runs as a command, with the tools' rights. */
export const deliverSource = ["repository", "locks", "work", "deliver"].map(part).join("\n\n");

/** Puts Git LFS objects into a repository's store; runs as a command, with the tools' rights. */
export const lfsSource = part("lfs");

/** Packs the result of a project's set-up for reuse; runs as a command, with the tools' rights. */
export const setupSource = part("setup");

/** Hashes or packs a Dockerfile's build context; runs as a command, with the tools' rights. */
export const contextSource = part("context");

/** Starts the supervisor in a container that someone else owns. */
export const attachSource = ["place", "attach"].map(part).join("\n\n");

/** Ends what a session left in such a container, and removes its files. */
export const detachSource = ["place", "process", "detach"].map(part).join("\n\n");

/** Copies bytes between an exec stream and the supervisor. */
export const relaySource = part("relay");

/** Loads a sandbox's network rules into its namespace, and probes whether they block what they should. */
export const firewallSource = ["reach", "firewall"].map(part).join("\n\n");

/** Lists listening ports in a sandbox. */
export const portsSource = part("ports");

/** Copies bytes between an exec stream and a server in the sandbox. */
export const forwardSource = part("forward");

/** The proxy of `network: listed`. */
export const egressProxySource = [
  "decision",
  "client_hello",
  "splice",
  "request",
  "tunnel",
  "proxy",
  "control",
]
  .map((name) => part(`../egress/${name}`))
  .join("\n\n");

/** The rules, with a placeholder for each set of addresses. */
export const networkTemplate = readFileSync(new URL("./network.nft", import.meta.url), "utf8");

/**
 * Arguments that run the program in the variable by the image's python3, isolated from site packages and PYTHON
 * variables. The program's own children do not get the variable.
 */
export function pythonArguments(variable: string): string[] {
  return [
    "python3",
    "-I",
    "-S",
    "-c",
    `import os;exec(compile(os.environ.pop("${variable}"),"${variable}","exec"))`,
  ];
}

/** The protocol's version; a sandbox with another one is refused. Equal to PROTOCOL in supervisor.py. */
export const PROTOCOL = 1;
