/** The engine's client, as DOCKER_HOST and its companions (DOCKER_TLS_VERIFY, DOCKER_CERT_PATH) say. */
import Dockerode from "dockerode";

/** Connects when first used; an engine that restarts costs only the calls in flight. */
export function connectDocker(): Dockerode {
  return new Dockerode();
}
