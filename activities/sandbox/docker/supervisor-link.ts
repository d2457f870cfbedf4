/** The link to one container's supervisor: connects on first use, and again when the stream ended but the sandbox runs. */
import type Dockerode from "dockerode";
import { PROTOCOL, relaySource } from "../agent/sources.ts";
import { type Answer, type RequestOptions, StreamEnded, SupervisorStream } from "./supervisor-stream.ts";
import { statusOf, unavailable } from "./docker-errors.ts";
import { startProgram } from "./run-program.ts";
import type { KernelStatus } from "./isolation-checks.ts";
import type { DiskBound, SandboxSettings } from "../spec.ts";
import { SandboxLost } from "../sandbox-lost.ts";

export type SupervisorLink = ReturnType<typeof createSupervisorLink>;

interface LinkOptions {
  readonly disk?: DiskBound | undefined;
  /** Variables, files and certificates for its commands. */
  readonly settings?: SandboxSettings | undefined;
  /** Addresses that are probed from inside when a stream is opened. */
  readonly probe: readonly string[];
  /** Set for a supervisor in someone else's container: tells the relay where its socket is. */
  readonly relay?: { readonly environment: readonly string[] };
  /** Settles once the network rules are in force, or could not be applied. Never rejects. */
  readonly ready: Promise<unknown>;
}

const CONNECT_TRIES = 20;
/** The daemon may take a moment to notice that a container died (survey of reliability, M12). */
const RETRY_MS = 100;
/** After five streams that each end within 10 s of the same request, the sandbox counts as lost. */
const BRIEF_MS = 10_000;
const MAX_BRIEF = 5;

export function createSupervisorLink(docker: Dockerode, containerId: string, options: LinkOptions) {
  const container = docker.getContainer(containerId);
  let connecting: ReturnType<typeof connectOnce> | undefined;
  let closed: SandboxLost | undefined;
  let bootId: string | undefined;

  async function connectOnce() {
    // Root, or in someone else's container that container's own user.
    const user = options.relay === undefined ? "0:0" : undefined;
    const relay = ["LONGHAUL_RELAY", relaySource] as const;
    const duplex = await startProgram(container, relay, options.relay?.environment ?? [], user);
    const stream = new SupervisorStream(duplex);
    try {
      await options.ready;
      const handshake = await stream.request("hello", {
        disk: options.disk,
        settings: options.settings,
        probe: options.probe,
      });
      if (handshake["protocol"] !== PROTOCOL)
        throw new Error(`the sandbox speaks protocol ${String(handshake["protocol"])}`);
      const boot = String(handshake["boot"]);
      bootId ??= boot;
      if (boot !== bootId) throw new SandboxLost("the sandbox was restarted");
      const { reachable } = handshake;
      return {
        stream,
        /** Whether the workspace was empty when the stream was opened. */
        empty: handshake["empty"] === true,
        /** Id of this start of the sandbox's processes. */
        boot,
        /** Addresses of `options.probe` that can be reached from inside. A supervisor of an earlier version does not report them. */
        reachable: Array.isArray(reachable) ? (reachable as readonly string[]) : options.probe,
        /** The supervisor's confinement as the kernel reports it; undefined from a supervisor of an earlier version. */
        isolation: handshake["isolation"] as KernelStatus | undefined,
      };
    } catch (error) {
      stream.close();
      throw error;
    }
  }

  async function connectWhileItRuns() {
    let trouble: unknown;
    for (let tries = 0; tries < CONNECT_TRIES; tries++) {
      if (closed) throw closed;
      await assertRunning(container);
      try {
        return await connectOnce();
      } catch (error) {
        if (error instanceof SandboxLost) throw error;
        trouble = error;
        if (statusOf(error) === undefined && !(error instanceof StreamEnded)) throw unavailable(error);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    throw new SandboxLost(`the sandbox is running, but its supervisor does not answer: ${String(trouble)}`);
  }

  async function connection(): ReturnType<typeof connectOnce> {
    if (closed) throw closed;
    connecting ??= connectWhileItRuns();
    const mine = connecting;
    try {
      const made = await mine;
      if (!made.stream.ended) return made;
    } catch (error) {
      if (connecting === mine) connecting = undefined;
      throw error;
    }
    if (connecting === mine) connecting = undefined;
    return connection();
  }

  return {
    /**
     * Connects if needed, once the network rules are in force. A link belongs to one start of the sandbox: a restarted sandbox
     * counts as lost.
     */
    async connect() {
      const { stream: _own, ...handshake } = await connection();
      return handshake;
    },
    /**
     * Sends a request; if the stream ends before the answer and the container still runs, sends it again on a new stream
     * with `again: true`, so every request must be idempotent.
     * @throws SandboxLost, SandboxUnavailable (retryable), Error with the supervisor's text, the signal's reason.
     */
    async request(op: string, fields: object, options?: RequestOptions): Promise<Answer> {
      let brief = 0;
      for (let again = false; ; again = true) {
        const { stream } = await connection();
        const beganMs = performance.now();
        try {
          return await stream.request(op, again ? { ...fields, again } : fields, options);
        } catch (error) {
          if (!(error instanceof StreamEnded)) throw error;
          if (closed) throw closed;
          brief = performance.now() - beganMs < BRIEF_MS ? brief + 1 : 0;
          if (brief === MAX_BRIEF) throw new SandboxLost(error.message, { cause: error });
        }
      }
    },
    /** Closes it permanently: pending and later requests fail with `SandboxLost` and this reason. */
    close(why: string): void {
      closed ??= new SandboxLost(why);
      connecting?.then(
        ({ stream }) => stream.close(),
        () => undefined,
      );
    },
  };
}

async function assertRunning(container: Dockerode.Container): Promise<void> {
  try {
    const { State: state } = await container.inspect();
    if (!state.Running)
      throw new SandboxLost(`the sandbox ended (${state.Status}, exit code ${state.ExitCode})`);
  } catch (error) {
    if (error instanceof SandboxLost) throw error;
    if (statusOf(error) === 404) throw new SandboxLost("the sandbox was removed", { cause: error });
    throw unavailable(error);
  }
}
