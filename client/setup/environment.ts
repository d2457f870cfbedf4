/** The variables that a child process inherits: an allow-list per purpose, so that a key reaches only what needs it. */
import type { Environment } from "../config/environment.ts";

/** The receivers: every process, those that fetch packages, the engine, our own programs, the worker. */
export type Purpose = "service" | "installer" | "dockerd" | "rehearsal" | "worker";

const ANY =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TMP|TEMP|XDG_[A-Z_]+|LD_LIBRARY_PATH|SYSTEMROOT)$/i;
/** A proxy's address may contain a password, which fetching programs need. */
const NETWORK =
  /^((https?|ftp|all|no)_proxy|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|NODE_USE_SYSTEM_CA|NODE_USE_ENV_PROXY|(CURL|REQUESTS)_CA_BUNDLE|GIT_SSL_CAINFO|PIP_CERT)$/i;
const NODE = /^NODE_(OPTIONS|ENV|NO_WARNINGS|TLS_REJECT_UNAUTHORIZED)$/;

/**
 * Settings of the worker. A change to any of them starts a new worker, so settings of the client alone are not included.
 * `PGSSLROOTCERT` and the like belong to the database client.
 */
export const WORKER_SETTINGS =
  /^(OPENAI_|LONGHAUL_(?!(USER|CONFIG|DEBUG|NO_SETUP|NO_INSTALL|CODEC_TOKEN)$|SERVE_)|TEMPORAL_|DOCKER_|DATABASE_|SANDBOX_IMAGE$|OTEL_|PG[A-Z]+$|AZURE_OPENAI_BASE_URL$|[A-Z][A-Z0-9_]*_API_(KEY|TOKEN)$)/;

const ALLOWED: Readonly<Record<Purpose, readonly RegExp[]>> = {
  service: [ANY],
  installer: [
    ANY,
    NETWORK,
    /^(DEBIAN_FRONTEND|APT_CONFIG|CGO_ENABLED|GO[A-Z0-9]+|PIP_[A-Z_]+|npm_config_.+)$/i,
  ],
  dockerd: [ANY, NETWORK, /^(DOCKER_(RAMDISK|TMPDIR)|DOCKERD_[A-Z_]+|MOBY_[A-Z_]+)$/],
  rehearsal: [ANY, NODE, /^LONGHAUL_REHEARSAL_/],
  // The engine may be reached over ssh.
  worker: [ANY, NETWORK, NODE, WORKER_SETTINGS, /^SSH_AUTH_SOCK$/],
};

export function childEnvironment(
  purpose: Purpose,
  environment: Environment = process.env,
): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => ALLOWED[purpose].some((pattern) => pattern.test(name))),
  );
}
