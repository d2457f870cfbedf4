/** The link to one container's supervisor: connects on first use, and again when the stream ended but the sandbox runs. */
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type Dockerode from "dockerode";
import { PROTOCOL, relaySource } from "../agent/sources.ts";
import type { DiskBound, SandboxSettings } from "../sandbox-host.ts";
import { SandboxLost } from "../sandbox.ts";
import { statusOf, unavailable } from "./docker-errors.ts";
import type { KernelStatus } from "./profile-differences.ts";
import { startProgram } from "./run-program.ts";
import {
  type SupervisorAnswer,
  type RequestOptions,
  StreamEnded,
  SupervisorStream,
} from "./supervisor-stream.ts";

/** In a container of our own, whose image may say otherwise. */
const OWN_RELAY = ["LONGHAUL_SOCKET=/var/lib/longhaul/control.sock", "LONGHAUL_CONNECT_SECONDS=10"];

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

/** What the supervisor reports when a stream to it is opened. */
export interface Handshake {
  /** Whether the workspace was empty when the stream was opened. */
  readonly empty: boolean;
  /** Id of this start of the sandbox's processes. */
  readonly boot: string;
  /** Addresses of `probe` that can be reached from inside. */
  readonly reachable: readonly string[];
  /** The supervisor's confinement as the kernel reports it; empty from the egress proxy. */
  readonly isolation: KernelStatus;
}

interface Connection {
  readonly stream: SupervisorStream;
  readonly handshake: Handshake;
}

const CONNECT_TRIES = 20;
/** The daemon may take a moment to notice that a container died. */
const RETRY_MS = 100;
/** After five streams that each end within 10 s of the same request, the sandbox counts as lost. */
const BRIEF_MS = 10_000;
const MAX_BRIEF = 5;

export class SupervisorLink {
  readonly #container: Dockerode.Container;
  readonly #options: LinkOptions;
  #connecting: Promise<Connection> | undefined;
  #closed: SandboxLost | undefined;
  /** Of the first handshake. */
  #boot: string | undefined;

  constructor(docker: Dockerode, containerId: string, options: LinkOptions) {
    this.#container = docker.getContainer(containerId);
    this.#options = options;
  }

  /**
   * Connects if needed, once the network rules are in force. A link belongs to one start of the sandbox: a restarted sandbox
   * counts as lost.
   */
  async connect(): Promise<Handshake> {
    return (await this.#connection()).handshake;
  }

  /**
   * Sends a request; if the stream ends before the answer and the container still runs, sends it again on a new stream
   * with `again: true`, so every request must be idempotent.
   * @throws SandboxLost, SandboxUnavailable (retryable), Error with the supervisor's text, the signal's reason.
   */
  async request(op: string, fields: object, options?: RequestOptions): Promise<SupervisorAnswer> {
    let brief = 0;
    for (let again = false; ; again = true) {
      const { stream } = await this.#connection();
      const beganMs = performance.now();
      try {
        return await stream.request(op, again ? { ...fields, again } : fields, options);
      } catch (error) {
        if (!(error instanceof StreamEnded)) throw error;
        if (this.#closed) throw this.#closed;
        brief = performance.now() - beganMs < BRIEF_MS ? brief + 1 : 0;
        if (brief === MAX_BRIEF) throw new SandboxLost(error.message, { cause: error });
      }
    }
  }

  /** Closes it permanently: pending and later requests fail with `SandboxLost` and this reason. */
  close(why: string): void {
    this.#closed ??= new SandboxLost(why);
    this.#connecting?.then(
      ({ stream }) => stream.close(),
      () => undefined,
    );
  }

  async #connection(): Promise<Connection> {
    if (this.#closed) throw this.#closed;
    this.#connecting ??= this.#connectWhileItRuns();
    const connecting = this.#connecting;
    try {
      const connection = await connecting;
      if (!connection.stream.ended) return connection;
    } catch (error) {
      this.#forget(connecting);
      throw error;
    }
    this.#forget(connecting);
    return this.#connection();
  }

  /** The next request connects again, unless another one has begun to. */
  #forget(connecting: Promise<Connection>): void {
    if (this.#connecting === connecting) this.#connecting = undefined;
  }

  async #connectWhileItRuns(): Promise<Connection> {
    let trouble: unknown;
    for (let tries = 0; tries < CONNECT_TRIES; tries++) {
      if (this.#closed) throw this.#closed;
      await assertRunning(this.#container);
      try {
        return await this.#connectOnce();
      } catch (error) {
        if (error instanceof SandboxLost) throw error;
        trouble = error;
        if (statusOf(error) === undefined && !(error instanceof StreamEnded)) throw unavailable(error);
      }
      await sleep(RETRY_MS);
    }
    throw new SandboxLost(`the sandbox is running, but its supervisor does not answer: ${String(trouble)}`);
  }

  async #connectOnce(): Promise<Connection> {
    const stream = new SupervisorStream(await this.#startRelay());
    try {
      const { ready, disk, settings, probe } = this.#options;
      await ready;
      const answer = await stream.request("hello", { disk, settings, probe });
      return { stream, handshake: this.#handshake(answer) };
    } catch (error) {
      stream.close();
      throw error;
    }
  }

  #startRelay(): Promise<Duplex> {
    const { relay } = this.#options;
    // Root, or in someone else's container that container's own user.
    const user = relay === undefined ? "0:0" : undefined;
    return startProgram(
      this.#container,
      ["LONGHAUL_RELAY", relaySource],
      relay?.environment ?? OWN_RELAY,
      user,
    );
  }

  /** @throws SandboxLost if the sandbox was restarted since the first one; Error for another protocol */
  #handshake({ protocol, boot, empty, reachable, isolation = {} }: SupervisorAnswer): Handshake {
    if (protocol !== PROTOCOL) throw new Error(`the sandbox speaks protocol ${String(protocol)}`);
    this.#boot ??= String(boot);
    if (String(boot) !== this.#boot) throw new SandboxLost("the sandbox was restarted");
    return {
      empty: empty === true,
      boot: this.#boot,
      reachable: reachable as readonly string[],
      isolation: isolation as KernelStatus,
    };
  }
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
