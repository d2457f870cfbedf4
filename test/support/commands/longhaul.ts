/** The real program, as a person or a script starts it. */
import { Client, Connection } from "@temporalio/client";
import { inject, onTestFinished } from "vitest";
import { findSessionRow } from "../../../activities/store/reading.ts";
import { resolveConfig } from "../../../client/config/config.ts";
import { openServices, type Services } from "../../../client/connect/connection.ts";
import { readStatus } from "../../../client/sessions/session-status.ts";
import type { SessionStatusDocument } from "../../../client/sessions/status-document.ts";
import { startSession } from "../../../client/sessions/start-session.ts";
import { withServices } from "../../../client/sessions/with-session.ts";
import type { LocalServices } from "../../../client/setup/services.ts";
import { eventually } from "../eventually.ts";
import { clientArgs, type Ended, spawned, type Started } from "../program.ts";
import { emptyFolder } from "../empty-folder.ts";

export interface Options {
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export { emptyFolder };
export type { Ended, Started };

export function starting(args: readonly string[], options: Options = {}): Started {
  return startedAs(process.execPath, clientArgs(args), options);
}

function startedAs(program: string, args: readonly string[], { cwd, environment, input }: Options): Started {
  return spawned(program, args, {
    cwd: cwd ?? emptyFolder(),
    env: { PATH: process.env["PATH"], ...inject("commandsEnvironment"), ...environment },
    input,
  });
}

/** The same in a terminal of this width; what it draws is returned as `out`. */
export function inTerminal(args: readonly string[], columns: number, options: Options = {}): Started {
  const quoted = [process.execPath, ...clientArgs(args)].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  const command = `stty cols ${columns} rows 24; exec ${quoted.join(" ")}`;
  const environment = { TERM: "xterm-256color", SHELL: "/bin/bash", ...options.environment };
  // `script` of util-linux gives its child a terminal and copies the output.
  return startedAs("script", ["-qfec", command, "/dev/null"], { ...options, environment });
}

/** Runs a command to its end. */
export function longhaul(args: readonly string[], options?: Options): Promise<Ended> {
  return starting(args, options).ended;
}

/**
 * Starts a session on `task`: by the program if there are flags, else in this process, because a start of the program
 * takes 1.3 s of CPU. @returns its id
 */
export async function begin(task: string, ...flags: readonly string[]): Promise<string> {
  if (flags.length === 0) return beginHere(task);
  const { code, out, err } = await longhaul(["start", task, ...flags]);
  if (code !== 0) throw new Error(`start ended with ${code}: ${err}`);
  return out.trim();
}

async function beginHere(task: string): Promise<string> {
  const { run: config } = resolveConfig({}, inject("commandsEnvironment"), emptyFolder());
  const start = { id: undefined, task, config, attachments: [], folder: undefined };
  const { id } = await withServices((services) => startSession(services, start), open);
  return id;
}

/** Starts a session and waits for the end of its run. @returns its id */
export async function finished(task: string, ...flags: readonly string[]): Promise<string> {
  const id = await begin(task, ...flags);
  const { status } = await (await temporal()).workflow.getHandle(id).result();
  if (status !== "completed") throw new Error(`${id} is ${status}.`);
  return id;
}

export const statusOf = (id: string): Promise<SessionStatusDocument> => untilStatus(id, () => true);

/** Waits for the session's status, read in this process: a start of the program takes a second. */
export function untilStatus(
  id: string,
  fits: (status: SessionStatusDocument) => boolean,
): Promise<SessionStatusDocument> {
  const readOnce = async (services: Services) => {
    const row = await findSessionRow(services.store.db, id);
    const status = row && (await readStatus(services, row));
    return status !== undefined && fits(status) && status;
  };
  return withServices(
    (services) => eventually(`the status of ${id}`, () => readOnce(services), 60_000),
    open,
  );
}

/** Uses the services in this process: a start of the program takes a second. */
export const inThisProcess = <T>(use: (services: Services) => Promise<T>): Promise<T> =>
  withServices(use, open);

function open(): Promise<Services> {
  const environment = inject("commandsEnvironment");
  const services: LocalServices = {
    databaseUrl: environment["DATABASE_URL"] ?? "",
    temporalAddress: environment["TEMPORAL_ADDRESS"] ?? "",
    taskQueue: environment["LONGHAUL_TASK_QUEUE"] ?? "",
    uiUrl: undefined,
    dockerHost: undefined,
    sandboxImage: undefined,
    rehearsalUrl: undefined,
    environment: {},
  };
  return openServices(services);
}

/** Waits until a command of step `step` runs. */
export async function untilRunning(id: string, step = 1): Promise<void> {
  const handle = (await temporal()).workflow.getHandle(id);
  const runs = async () => {
    const status = (await handle.query("status").catch(() => undefined)) as
      | { readonly step: number; readonly phase: string }
      | undefined;
    return status !== undefined && status.step === step && status.phase === "running tools";
  };
  await eventually(`step ${step} of ${id} runs its tools`, runs, 60_000);
}

/** Temporal's own client, as the Web UI uses it. */
export async function temporal(): Promise<Client> {
  const address = inject("commandsEnvironment")["TEMPORAL_ADDRESS"] ?? "";
  const connection = await Connection.connect({ address });
  onTestFinished(() => connection.close());
  return new Client({ connection });
}
