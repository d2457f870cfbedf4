/** Finds the session's sandbox on this machine's Docker engine, for `ports` and `forward`. */
import { hostname } from "node:os";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { runningSandbox } from "../../activities/sandbox/docker/sandbox-ports.ts";
import type { Store } from "../../activities/store/db.ts";
import { findSandbox } from "../../activities/store/sandboxes.ts";
import { missing, notPossible } from "../console/errors.ts";

export { forwardPort, listeningPorts } from "../../activities/sandbox/docker/sandbox-ports.ts";

/**
 * @throws ClientError (missing) if no engine answers, (impossible) if it does not have the sandbox
 */
export async function sandboxHere({ db }: Pick<Store, "db">, sessionId: string) {
  const found = await runningSandbox(connectDocker(), sessionId).catch((error: unknown) => {
    throw missing(
      "The Docker engine does not answer; a sandbox's servers are reached through it.",
      "Run this where the worker's engine is, or set DOCKER_HOST to it.",
      error,
    );
  });
  if (found !== undefined) return found;
  const host = (await findSandbox(db, sessionId))?.host;
  throw notPossible(
    `${sessionId} has no running sandbox on this Docker engine.`,
    host === undefined || host === "" || host === hostname()
      ? `A sandbox lives while the session runs: longhaul status ${sessionId}`
      : `It is on ${host}: run this there, or set DOCKER_HOST to its engine.`,
  );
}
