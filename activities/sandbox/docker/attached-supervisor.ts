/** Our supervisor in a container that someone else owns: starts it there, and removes it with everything that it left. */
import { createHash } from "node:crypto";
import type Dockerode from "dockerode";
import { attachSource, detachSource, pythonArguments, supervisorSource } from "../agent/sources.ts";
import { containerUnavailable } from "./docker-errors.ts";
import { runInside } from "./run-program.ts";
import { noPython } from "./usable-container.ts";

/** The supervisor has just been started, or a command has killed it: after some 20 tries a new one is started. */
const CONNECT_SECONDS = 0.5;
const HASH_CHARS = 12;
/** Numbers of a session's commands count down from this plus a hash of its id, so that sessions in one container differ. */
const LEAST_NUMBER = 2 ** 33;

export interface AttachedPlace {
  readonly sessionId: string;
  /** Its name, for people. */
  readonly name: string;
  /** The container's id. */
  readonly id: string;
  /** The folder to work in. */
  readonly folder: string;
}

/**
 * Starts the supervisor unless it is running.
 * @returns whether it was running
 * @throws ContainerUnavailable (fatal), SandboxUnavailable (retryable)
 */
export async function startSupervisor(docker: Dockerode, place: AttachedPlace): Promise<boolean> {
  const { sessionId, name, id, folder } = place;
  const attached = attachedVariable(sessionId, folder);
  const { answer, said } = await runInside(docker, id, {
    argv: pythonArguments("LONGHAUL_ATTACH"),
    env: [`LONGHAUL_ATTACH=${attachSource}`, attached],
  });
  if (answer === undefined) throw containerUnavailable(name, noPython(said));
  if (typeof answer["unable"] === "string") throw containerUnavailable(name, answer["unable"]);
  if (answer["running"] === true) return true;
  const exec = await docker.getContainer(id).exec({
    Cmd: pythonArguments("LONGHAUL_SUPERVISOR"),
    Env: [`LONGHAUL_SUPERVISOR=${supervisorSource}`, attached, `LONGHAUL_HOME=${homeOf(sessionId)}`],
    WorkingDir: "/",
  });
  // Nothing is attached to its streams, so it outlives this worker.
  (await exec.start({ Detach: true })).resume();
  return false;
}

/** Ends the session's processes and removes our files. @returns whether all processes ended */
export async function removeSupervisor(docker: Dockerode, sessionId: string, id: string): Promise<boolean> {
  const { answer } = await runInside(docker, id, {
    argv: pythonArguments("LONGHAUL_DETACH"),
    env: [`LONGHAUL_DETACH=${detachSource}`, attachedVariable(sessionId, "/")],
  });
  return answer?.["left"] === 0;
}

/** Variables of the relay that connects to the session's supervisor. */
export const relayEnvironment = (sessionId: string): readonly string[] => [
  `LONGHAUL_SOCKET=${homeOf(sessionId)}/control.sock`,
  `LONGHAUL_CONNECT_SECONDS=${CONNECT_SECONDS}`,
];

/** Tells the programs in the container that they are attached: see agent/place.py. */
function attachedVariable(sessionId: string, folder: string): string {
  const mark = hashOf(sessionId);
  const number = Number.parseInt(mark, 16) + LEAST_NUMBER;
  return `LONGHAUL_ATTACHED=${JSON.stringify({ home: homeOf(sessionId), workspace: folder, mark, number })}`;
}

/** The folder with our files in the container. */
const homeOf = (sessionId: string): string => `/tmp/.longhaul-${hashOf(sessionId)}`;

const hashOf = (sessionId: string): string =>
  createHash("sha256").update(sessionId).digest("hex").slice(0, HASH_CHARS);
