/** The Python programs that run inside containers: each is a module of the packages `agent` and `egress`, and all that it imports. */
import { readFileSync } from "node:fs";
import { deflateSync } from "node:zlib";

const LOADER = "agent.loader";

const text = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

const PACKAGES = ["agent", "egress", "agent.delivery", "agent.workspace"];
const read = new Map<string, string>();

/** Undefined for what is not ours: the standard library. */
function sourceOf(name: string): string | undefined {
  if (!/^(agent|egress)\b/.test(name)) return undefined;
  const path = name.replaceAll(".", "/");
  const source = read.get(name) ?? text(PACKAGES.includes(name) ? `${path}/__init__.py` : `${path}.py`);
  read.set(name, source);
  return source;
}

/** The names of the modules that a module imports when it is loaded. */
function importedBy(name: string, source: string): string[] {
  return [...source.matchAll(/^from (\.*)([\w.]+) import /gm)].map(([, dots = "", rest = ""]) =>
    dots === "" ? rest : [...name.split(".").slice(0, -dots.length), rest].join("."),
  );
}

/**
 * The program as one text: as JSON, which Python's `eval` reads too, the main module's name, all modules by name, and `foreign`;
 * deflated, in base64. Programs are passed in the environment of the process that runs them, so that `ps` stays readable. The
 * kernel takes at most 128 KiB in one variable, and the engine repeats it in each answer about a container.
 * @param foreign names of variables that are removed first, because the image may have set them
 */
function programOf(main: string, foreign: readonly string[] = []): string {
  const modules: Record<string, string> = {};
  const add = (name: string): void => {
    const source = name in modules ? undefined : sourceOf(name);
    if (source === undefined) return;
    modules[name] = source;
    for (const imported of importedBy(name, source)) add(imported);
    if (name.includes(".")) add(name.slice(0, name.lastIndexOf(".")));
  };
  add(LOADER);
  add(main);
  return packed([main, modules, foreign]);
}

/** A program as it is passed. */
export const packed = (
  program: readonly [main: string, modules: Readonly<Record<string, string>>, foreign: readonly string[]],
): string => deflateSync(JSON.stringify(program)).toString("base64");

/** Packed when it is first needed: that takes milliseconds, and most processes need no large one. */
function whenNeeded(make: () => string): () => string {
  let program: string | undefined;
  return () => (program ??= make());
}

/** The supervisor in a container that someone else owns. */
export const supervisorSource = whenNeeded(() => programOf("agent.supervisor"));

const foreign = ["LONGHAUL_ATTACHED", "LONGHAUL_HOME"];
const supervisorWithoutEgress = whenNeeded(() =>
  programOf("agent.supervisor", [...foreign, "LONGHAUL_EGRESS"]),
);
const supervisorWithEgress = whenNeeded(() => programOf("agent.supervisor", foreign));

/**
 * The same in a container of our own, deaf to what the image's environment says of these variables: only a container that someone
 * else owns has them from us.
 */
export const ownSupervisorSource = ({ hasEgress }: { readonly hasEgress: boolean }): string =>
  hasEgress ? supervisorWithEgress() : supervisorWithoutEgress();

/** Saves and restores a workspace; runs as a command, with the tools' rights. Its input: agent/workspace/main.py. */
export const workspaceSource = whenNeeded(() => programOf("agent.workspace.main"));

/** Commits a session's uncommitted work, and finds what else there is; runs as a command, with the tools' rights. */
export const deliverSource = programOf("agent.delivery.deliver");

/** Puts Git LFS objects into a repository's store; runs as a command, with the tools' rights. */
export const lfsSource = programOf("agent.lfs");

/** Packs the result of a project's set-up for reuse; runs as a command, with the tools' rights. */
export const setupSource = programOf("agent.setup");

/** Hashes or packs a Dockerfile's build context; runs as a command, with the tools' rights. */
export const contextSource = programOf("agent.context");

/** Starts the supervisor in a container that someone else owns. */
export const attachSource = programOf("agent.attach");

/** Ends what a session left in such a container, and removes its files. */
export const detachSource = programOf("agent.detach");

/** Looks at an image before a sandbox is made of it. */
export const imageSource = programOf("agent.image");

/** Copies bytes between an exec stream and the supervisor. */
export const relaySource = programOf("agent.relay");

/** Loads a sandbox's network rules into its namespace, and probes whether they block what they should. */
export const firewallSource = programOf("agent.firewall");

/** Lists listening ports in a sandbox. */
export const portsSource = programOf("agent.ports");

/** Copies bytes between an exec stream and a server in the sandbox. */
export const forwardSource = programOf("agent.forward");

/** The proxy of `network: listed`. */
export const egressProxySource = whenNeeded(() => programOf("egress.control"));

/** Makes what proves key hosts to a sandbox; runs once, in a container of the operator's image. */
export const certificatesSource = programOf("egress.certificates");

/** The rules, with a placeholder for each set of addresses. */
export const networkTemplate = text("agent/network.nft");

/**
 * Arguments that run the program in the variable by the image's python3, isolated from site packages and PYTHON
 * variables. The program's own children do not get the variable.
 */
export function pythonArguments(variable: string): string[] {
  const program = `eval(zlib.decompress(binascii.a2b_base64(os.environ.pop("${variable}"))))`;
  const load = `main,modules,foreign=${program};exec(modules["${LOADER}"]);run(main,modules,foreign)`;
  return ["python3", "-I", "-S", "-c", `import binascii,os,zlib;${load}`];
}

/** What a program of ours prints, and nothing else, in a Python that is too old for it: agent/loader.py. */
export const TOO_OLD = /python3 is version \S+ here, and Longhaul needs \S+ or newer/;

/** Opens a picture or a PDF's page: run by the image's own interpreter, whose packages it needs. */
export const pictureSource = programOf("agent.picture");

/** The protocol's version; a sandbox with another one is refused. Equal to PROTOCOL in supervisor.py. */
export const PROTOCOL = 1;
