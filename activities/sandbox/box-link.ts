/** The way to one container's supervisor: connects when first used, and again when the stream ended but the box runs. */
import type Dockerode from "dockerode";
import { retryable } from "../failures.ts";
import { PROTOCOL, pythonArguments, relaySource } from "./box-source.ts";
import { createBoxStream, StreamEnded } from "./box-stream.ts";
import type { Answer, BoxStream, RequestOptions } from "./box-stream.ts";
import { statusOf, unavailable } from "./docker-errors.ts";
import type { DiskBound } from "./sandbox.ts";
import { SandboxLost } from "./sandbox-lost.ts";

export interface BoxLink {
  /**
   * Sends a request; where the stream ends meanwhile and the container still runs, again on a new stream with
   * `again: true`. So every request must bear being done more than once.
   * @throws SandboxLost, SandboxUnavailable (retryable), Error with the supervisor's text, the signal's reason.
   */
  request(op: string, fields: object, options?: RequestOptions): Promise<Answer>;
  /**
   * Connects if need be, and puts the box's rules in force before anything can be asked of it. This way leads to one
   * life of the box alone: a restarted box counts as lost.
   */
  connect(): Promise<BoxHello>;
  close(): void;
}

export interface BoxHello {
  /** Whether the workspace was empty when the stream was made. */
  readonly empty: boolean;
  /** Which life of the box's processes it is. */
  readonly boot: string;
  /** Why what must not be reached can be reached nevertheless; empty where it cannot. */
  readonly leaks: readonly string[];
}

interface Connection extends BoxHello {
  readonly stream: BoxStream;
}

export interface BoxRules {
  readonly disk?: DiskBound | undefined;
  /** Addresses that must not be reachable from inside. */
  readonly probe: readonly string[];
  /** Makes them unreachable. @returns what went wrong. Begun already where the box has only just been started. */
  readonly guard: () => Promise<readonly string[]>;
}

const CONNECT_TRIES = 20;
/** The daemon may take a moment to notice that a container died (survey of reliability, M12). */
const RETRY_MS = 100;
/** So many streams in a row that end so soon after the same request count as the loss of the box; others a wait outlives. */
const BRIEF_MS = 10_000;
const MAX_BRIEF = 5;

export function createBoxLink(docker: Dockerode, containerId: string, rules: BoxRules): BoxLink {
  const container = docker.getContainer(containerId);
  let connecting: Promise<Connection> | undefined;
  let leaking: Promise<readonly string[]> | undefined;
  let closed = false;
  let life: string | undefined;

  async function connectOnce(): Promise<Connection> {
    const exec = await container.exec({
      Cmd: pythonArguments("LONGHAUL_RELAY"),
      Env: [`LONGHAUL_RELAY=${relaySource}`],
      User: "0:0",
      WorkingDir: "/",
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
    });
    const stream = createBoxStream(await exec.start({ hijack: true, stdin: true }));
    try {
      const greeting = { disk: rules.disk, probe: rules.probe };
      const hello = await stream.request("hello", greeting);
      if (hello["protocol"] !== PROTOCOL)
        throw new Error(`the box speaks protocol ${String(hello["protocol"])}`);
      const boot = String(hello["boot"]);
      life ??= boot;
      if (boot !== life) throw new SandboxLost("the box was restarted");
      const leaks = reachable(hello).length === 0 ? [] : await stopLeaks(stream, greeting);
      return { stream, empty: hello["empty"] === true, boot, leaks };
    } catch (error) {
      stream.close();
      throw error;
    }
  }

  /** An engine that could not once is not asked again: what runs in the box by then is not trusted. */
  async function stopLeaks(stream: BoxStream, greeting: object): Promise<readonly string[]> {
    leaking ??= (async () => {
      const troubles = await rules.guard();
      const open = reachable(await stream.request("hello", greeting));
      return open.length === 0 ? [] : [`${open.join(", ")} can be reached`, ...troubles];
    })();
    const mine = leaking;
    const leaks = await mine.catch((error: unknown) => {
      leaking = undefined;
      throw error;
    });
    // The next time is after a restart of the container, which needs its rules anew.
    if (leaks.length === 0) leaking = undefined;
    return leaks;
  }

  function reachable(hello: Answer): readonly string[] {
    // A box of an earlier version does not answer that.
    return Array.isArray(hello["reachable"]) ? (hello["reachable"] as string[]) : rules.probe;
  }

  async function connectWhileItRuns(): Promise<Connection> {
    let trouble: unknown;
    for (let tries = 0; tries < CONNECT_TRIES; tries++) {
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
    throw new SandboxLost(`the box runs, but its supervisor does not answer: ${String(trouble)}`);
  }

  async function connection(): Promise<Connection> {
    if (closed) throw closing();
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
    async connect() {
      const { empty, boot, leaks } = await connection();
      return { empty, boot, leaks };
    },
    async request(op, fields, options) {
      let brief = 0;
      for (let again = false; ; again = true) {
        const { stream } = await connection();
        const beganMs = performance.now();
        try {
          return await stream.request(op, again ? { ...fields, again } : fields, options);
        } catch (error) {
          if (!(error instanceof StreamEnded) || closed) throw closed ? closing() : error;
          brief = performance.now() - beganMs < BRIEF_MS ? brief + 1 : 0;
          if (brief === MAX_BRIEF) throw new SandboxLost(error.message, { cause: error });
        }
      }
    },
    close() {
      closed = true;
      connecting?.then(
        ({ stream }) => stream.close(),
        () => undefined,
      );
    },
  };
}

const closing = (): Error =>
  retryable(
    "SandboxUnavailable",
    "this worker ends and has closed its way to the box; what runs there goes on and is found again",
  );

async function assertRunning(container: Dockerode.Container): Promise<void> {
  try {
    const { State: state } = await container.inspect();
    if (!state.Running) throw new SandboxLost(`the box ended (${state.Status}, exit code ${state.ExitCode})`);
  } catch (error) {
    if (error instanceof SandboxLost) throw error;
    if (statusOf(error) === 404) throw new SandboxLost("the box was removed", { cause: error });
    throw unavailable(error);
  }
}
