/** Questions and answers between the benchmark and the processes it measures, over Node's own channel. */
import { fork, type ChildProcess } from "node:child_process";

interface Question {
  readonly id: number;
  readonly verb: string;
  readonly args: readonly unknown[];
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

export type Verbs = Readonly<Record<string, (...args: never[]) => unknown>>;

/** The other side's verbs, each with a promise for its answer. */
type Remote<V extends Verbs> = {
  readonly [Name in keyof V]: (...args: Parameters<V[Name]>) => Promise<Awaited<ReturnType<V[Name]>>>;
};

export interface RemoteProcess<V extends Verbs> {
  readonly ask: Remote<V>;
  readonly pid: number;
  /** Ends it and waits. */
  end(): Promise<void>;
}

const QUICK_START = new URL("../../../scripts/quick-start.mjs", import.meta.url).href;

/** Starts a process of our own and waits until it says that it is ready. @throws Error if it ends before */
export async function startProcess<V extends Verbs>(
  file: URL,
  environment: Readonly<Record<string, string>> = {},
): Promise<RemoteProcess<V>> {
  const child = fork(file, {
    execArgv: ["--import", QUICK_START, "--expose-gc"],
    env: { ...process.env, ...environment },
    serialization: "advanced",
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let asked = 0;
  const ready = new Promise<void>((resolve, reject) => {
    child.on("message", (message: Answer | "ready") => {
      if (message === "ready") return resolve();
      const { resolve: done, reject: failed } = waiting.get(message.id) ?? {};
      waiting.delete(message.id);
      if (message.error === undefined) done?.(message.value);
      else failed?.(new Error(message.error));
    });
    child.once("exit", (code) => {
      const error = new Error(`${file.pathname} ended with ${code}`);
      reject(error);
      for (const question of waiting.values()) question.reject(error);
    });
  });
  await ready;
  const ask = new Proxy({} as Remote<V>, {
    get: (_target, verb) =>
      typeof verb === "symbol" || verb === "then"
        ? undefined
        : (...args: unknown[]) =>
            new Promise((resolve, reject) => {
              const id = ++asked;
              waiting.set(id, { resolve, reject });
              child.send({ id, verb, args } satisfies Question);
            }),
  });
  return { ask, pid: child.pid ?? 0, end: () => end(child) };
}

function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return Promise.resolve();
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.disconnect();
  const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
  return ended.finally(() => clearTimeout(timer));
}

/** In the started process: answers questions until the benchmark hangs up, then cleans up and ends. */
export function serve(verbs: Verbs, close: () => Promise<void>): void {
  process.on("message", (question: Question) => {
    const { id, verb, args } = question;
    Promise.resolve()
      .then(() => verbs[verb]?.(...(args as never[])))
      .then(
        (value) => process.send?.({ id, value } satisfies Answer),
        (error: unknown) => process.send?.({ id, error: String(error) } satisfies Answer),
      );
  });
  process.once("disconnect", () => {
    void close().finally(() => process.exit(0));
  });
  process.send?.("ready");
}

/** Wall clock in ms with fractions: comparable between processes of one machine. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}
