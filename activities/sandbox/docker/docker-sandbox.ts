/** The port's `Sandbox` over the link to its supervisor. The rules for files are enforced in the sandbox: agent/files.py. */
import type {
  CommandState,
  FileAnswer,
  Sandbox,
  SandboxCommand,
  SandboxFiles,
  TerminalLook,
  WaitOptions,
} from "../sandbox.ts";
import type { SupervisorLink } from "./supervisor-link.ts";
import type { SupervisorAnswer } from "./supervisor-stream.ts";

/** Source: requirement 2.8, the process's end within 0.5 s of a cancel. */
const DEFAULT_GRACE_MS = 300;

export function createDockerSandbox(
  facts: Pick<
    Sandbox,
    "container" | "identity" | "baseSetUp" | "empty" | "network" | "gaps" | "egress" | "refused"
  >,
  link: SupervisorLink,
): Sandbox {
  const follow = async (op: string, fields: object, { timeoutMs, signal, onOutput }: WaitOptions) =>
    toState(
      await link.request(
        op,
        { ...fields, waitMs: timeoutMs, progress: onOutput !== undefined },
        { signal, onBytes: onOutput },
      ),
    );
  return {
    ...facts,
    start: async (command) => toState(await link.request("start", startFields(command))),
    run: (command, options = {}) => follow("start", { ...startFields(command), wait: true }, options),
    async feed(id, at, bytes, { last }) {
      const position = typeof at === "number" ? { offset: at } : at;
      const { taken } = await link.request("feed", { id, ...position, last, data: toBase64(bytes) });
      return taken === true;
    },
    wait: (id, options = {}) => follow("wait", { id }, options),
    async read(id, stream, offset, maxBytes) {
      const { data } = await link.request("read", { id, stream, offset, maxBytes });
      return toBytes(data);
    },
    async look(id, { timeoutMs, signal, ...options }) {
      const { state, data, dataFrom, waits, ...facts } = await link.request(
        "look",
        { id, ...options, waitMs: timeoutMs },
        { signal },
      );
      return {
        // Cast safely, as below.
        ...(facts as unknown as Omit<TerminalLook, "state" | "bytes" | "bytesFrom" | "waits">),
        state: toState(state as SupervisorAnswer),
        bytes: toBytes(data),
        bytesFrom: Number(dataFrom),
        waits: typeof waits === "boolean" ? waits : undefined,
      };
    },
    resize: async (id, size) => toState(await link.request("resize", { id, ...size })),
    kill: async (id, graceMs = DEFAULT_GRACE_MS) => toState(await link.request("kill", { id, graceMs })),
    async state(id) {
      const { state } = await link.request("state", { id });
      return state === null ? undefined : toState(state as SupervisorAnswer);
    },
    async list() {
      const { states } = await link.request("list", {});
      return (states as SupervisorAnswer[]).map(toState).filter(({ id }) => !id.includes("-"));
    },
    // Ignored: only disk space is at stake, and a lost sandbox shows at the next request.
    async discard(id) {
      await link.request("discard", { id }).catch(() => undefined);
    },
    files: createSandboxFiles(link),
  };
}

function createSandboxFiles(link: SupervisorLink): SandboxFiles {
  const ask = async <T>(action: string, path: string, fields: object = {}): Promise<FileAnswer<T>> =>
    // Cast safely: the supervisor speaks our own protocol, and its version was compared when the stream was opened.
    (await link.request("file", { do: action, path, ...fields })) as FileAnswer<T>;
  return {
    async read(path, options = {}) {
      const answer = await ask<{ data: string; size: number; hash: string; mode: number }>(
        "read",
        path,
        options,
      );
      if (!answer.ok) return answer;
      const { data, ...facts } = answer;
      return { ...facts, bytes: toBytes(data) };
    },
    write: (path, bytes, options = {}) => ask("write", path, { ...options, data: toBase64(bytes) }),
    remove: (path, options = {}) => ask("remove", path, options),
    list: (path, options = {}) => ask("list", path, options),
    stat: (path) => ask("stat", path),
  };
}

// Cast safely, as above.
const toState = (answer: SupervisorAnswer): CommandState => answer as unknown as CommandState;

const toBytes = (base64: unknown): Uint8Array => Buffer.from(String(base64), "base64");

const toBase64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");

const startFields = ({ stdin, ...rest }: SandboxCommand): object =>
  stdin === undefined ? rest : { ...rest, stdin: toBase64(stdin) };
