/** The port's `Sandbox` over the way to a sandbox. */
import { toBase64, toBytes } from "./base64.ts";
import type { Answer } from "./supervisor-stream.ts";
import type { SupervisorLink } from "./supervisor-link.ts";
import { createSandboxFiles } from "./docker-files.ts";
import type { SandboxCommand, CommandState, Sandbox, WaitOptions } from "../sandbox.ts";

/** Source: requirement 2.8, the process's end within 0.5 s of a cancel. */
const DEFAULT_GRACE_MS = 300;

export function createDockerSandbox(
  facts: Pick<Sandbox, "container" | "identity" | "empty" | "network" | "gaps">,
  link: SupervisorLink,
): Sandbox {
  return {
    ...facts,
    start: async (command) => toState(await link.request("start", startFields(command))),
    run: async (command, options = {}) =>
      toState(
        await link.request(
          "start",
          { ...startFields(command), ...waitFields(options), wait: true },
          { signal: options.signal, onBytes: options.onOutput },
        ),
      ),
    async feed(id, offset, bytes, { last }) {
      const { taken } = await link.request("feed", { id, offset, last, data: toBase64(bytes) });
      return taken === true;
    },
    wait: async (id, options = {}) =>
      toState(
        await link.request(
          "wait",
          { id, ...waitFields(options) },
          { signal: options.signal, onBytes: options.onOutput },
        ),
      ),
    async read(id, stream, offset, maxBytes) {
      const answer = await link.request("read", { id, stream, offset, maxBytes });
      return toBytes(answer["data"]);
    },
    kill: async (id, graceMs = DEFAULT_GRACE_MS) => toState(await link.request("kill", { id, graceMs })),
    async state(id) {
      const { state } = await link.request("state", { id });
      return state === null ? undefined : toState(state as Answer);
    },
    async list() {
      const { states } = await link.request("list", {});
      return (states as Answer[]).map(toState).filter(({ id }) => !id.includes("-"));
    },
    // Only room is at stake: whatever is wrong is found by the next request.
    discard: (id) =>
      link.request("discard", { id }).then(
        () => undefined,
        () => undefined,
      ),
    files: createSandboxFiles(link),
  };
}

// What the supervisor sends is our own protocol, whose version was compared when the stream was made.
const toState = (answer: Answer): CommandState => answer as unknown as CommandState;

function startFields({ stdin, ...rest }: SandboxCommand): object {
  return stdin === undefined ? rest : { ...rest, stdin: toBase64(stdin) };
}

function waitFields({ timeoutMs, onOutput }: WaitOptions): object {
  return { waitMs: timeoutMs, progress: onOutput !== undefined };
}
