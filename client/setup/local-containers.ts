/** Containers of this machine's Docker engine that a person names: that of `--container`, and a session's sandbox. */
import { shellWord } from "../console/format.ts";
import { type AttachedContainer, containerSchema } from "../../activities/config/sandbox-settings.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { lacksPython, usableContainer } from "../../activities/sandbox/docker/attached.ts";
import { withTimeout } from "../../temporal/patience.ts";
import { missing, usageError, notPossible } from "../console/errors.ts";
import { hostname } from "node:os";
import { runningSandbox } from "../../activities/sandbox/docker/sandbox-ports.ts";
import type { Store } from "../../activities/store/db.ts";
import { findSandbox } from "../../activities/store/sandboxes.ts";

/** Source: requirement 1.2, anything missing is reported within 10 s. */
const TIMEOUT_MS = 8_000;

/**
 * @param folder to work in; default: the container's own working folder
 * @throws ClientError (missing) if there is no such running container or it is unusable; (usage)
 */
export async function checkContainer(name: string, folder: string | undefined): Promise<AttachedContainer> {
  if (!containerSchema.shape.name.safeParse(name).success)
    throw usageError(`"${name}" is not the name or id of a container.`);
  const docker = connectDocker();
  const container = await withTimeout(usableContainer(docker, { name }), TIMEOUT_MS).catch(
    (error: unknown) => {
      // The worker may use another engine, and makes its own check.
      if (folder !== undefined) return undefined;
      throw missing(
        `Docker does not answer here, so the working folder of ${name} is not known: ${reasonOf(error)}`,
        "Name the folder: --workspace-dir DIR; or set DOCKER_HOST.",
        error,
      );
    },
  );
  if (container === undefined) return { name, folder: folder ?? "" };
  if (container.id === undefined) throw refused(name, container.why);
  const trouble = await withTimeout(lacksPython(docker, container.id), TIMEOUT_MS);
  if (trouble !== undefined) throw refused(name, trouble);
  const containerFolder = folder ?? container.folder;
  if (containerFolder === "/")
    throw usageError(
      `The working folder of the container ${name} is /, which is too much to work in.`,
      "Name a folder of it: --workspace-dir DIR",
    );
  return { name, id: container.id, folder: containerFolder.replace(/\/+$/, "") };
}

const refused = (name: string, why: string) =>
  missing(
    `No session can work in the container ${name}: ${why}.`,
    "It has to run on this machine's Docker engine, with python3 and bash: docs/evaluation.md says what it needs.",
  );

export { forwardPort, listeningPorts } from "../../activities/sandbox/docker/sandbox-ports.ts";

/**
 * @throws ClientError (missing) if no engine answers, (impossible) if it does not have the sandbox
 */
export async function sandboxHere({ db }: Pick<Store, "db">, sessionId: string) {
  const recorded = await findSandbox(db, sessionId);
  const container = await runningSandbox(connectDocker(), sessionId, recorded?.container).catch(
    (error: unknown) => {
      throw missing(
        "The Docker engine does not answer; a sandbox's servers are reached through it.",
        "Run this where the worker's engine is, or set DOCKER_HOST to it.",
        error,
      );
    },
  );
  if (container !== undefined) return container;
  const host = recorded?.host;
  throw notPossible(
    `${sessionId} has no running sandbox on this Docker engine.`,
    host === undefined || host === "" || host === hostname()
      ? `A sandbox lives while the session runs: longhaul status ${shellWord(sessionId)}`
      : `It is on ${host}: run this there, or set DOCKER_HOST to its engine.`,
  );
}
