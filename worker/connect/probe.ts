/** Checks whether a service answers. Each probe has a time limit, returns what it found, and fails with a fix. */
import { request } from "node:http";
import { connect } from "node:net";
import type { Connection } from "@temporalio/client";
import pg from "pg";
import { temporalConnection } from "./temporal-connection.ts";
import { refusePooler } from "./probe-pooler.ts";
import { ServiceMissing } from "./service-missing.ts";
import { lacksNamespace } from "./namespace-missing.ts";
import { withTimeout } from "./with-timeout.ts";
import { plainReason } from "./plain-reason.ts";

/** Exit code 4 comes within 10 s [U7], and a busy machine's engine may take more than 4 s (measured 2026-11). */
const PROBE_MS = 7_000;
const DEFAULT_SOCKET = "unix:///var/run/docker.sock";

/** @returns such as `PostgreSQL 18.4`. @throws ServiceMissing, also for a pooler in between that we cannot work with */
export async function probePostgres(url: string, timeoutMs = PROBE_MS): Promise<string> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ version: string }>(
      "select current_setting('server_version') as version",
    );
    await refusePooler(client, url, withoutPassword(url), timeoutMs);
    return `PostgreSQL ${rows[0]?.version ?? "?"}`;
  } catch (error) {
    if (error instanceof ServiceMissing) throw error;
    throw new ServiceMissing({
      service: "Postgres",
      address: withoutPassword(url),
      reason: plainReason(error),
      fix: "Correct DATABASE_URL, or unset it and `npm start` brings up its own.",
      cause: error,
    });
  } finally {
    await client.end().catch(() => {});
  }
}

/** @returns such as `Temporal 1.29.1, namespace default`. @throws ServiceMissing */
export async function probeTemporal(address?: string, timeoutMs = PROBE_MS): Promise<string> {
  const { connection: options, namespace } = temporalConnection(address);
  const where = options.address ?? "127.0.0.1:7233";
  const deadline = Date.now() + timeoutMs;
  let connection: Connection | undefined;
  try {
    // A refused port is known at once; the client would retry until the time is up.
    await knock(where, timeoutMs);
    // Loaded only here: loading it takes 0.2 s of a processor.
    const { Connection } = await import("@temporalio/client");
    connection = await withTimeout(Connection.connect({ ...options, connectTimeout: timeoutMs }), timeoutMs);
    const service = connection.workflowService;
    const info = await connection.withDeadline(deadline, async () => {
      await service.describeNamespace({ namespace });
      return service.getSystemInfo({});
    });
    return `Temporal ${info.serverVersion ?? "?"}, namespace ${namespace}`;
  } catch (error) {
    throw temporalMissing(where, error);
  } finally {
    await connection?.close().catch(() => {});
  }
}

export function temporalMissing(address: string, cause: unknown): ServiceMissing {
  return new ServiceMissing({
    service: "Temporal",
    address,
    reason: plainReason(cause),
    fix: lacksNamespace(cause)
      ? "Correct TEMPORAL_NAMESPACE, or create the namespace on that server."
      : "Correct TEMPORAL_ADDRESS, or unset it and `npm start` starts its own server.",
    cause,
  });
}

/** @returns such as `Docker 28.2.2`. @throws ServiceMissing */
export async function probeDocker(dockerHost?: string, timeoutMs = PROBE_MS): Promise<string> {
  const address = dockerHost ?? DEFAULT_SOCKET;
  try {
    const version: { Version?: string } = JSON.parse(await get(address, "/version", timeoutMs));
    return `Docker ${version.Version ?? "?"}`;
  } catch (error) {
    throw dockerMissing(address, error);
  }
}

export function dockerMissing(address: string, cause: unknown): ServiceMissing {
  const common = { service: "Docker engine", address, cause };
  if (isPermissionDenied(cause)) {
    return new ServiceMissing({
      ...common,
      problem: `does not let this user in at ${address}`,
      reason: "permission denied",
      fix: "Add yourself to the group docker, then log in again: sudo usermod -aG docker $USER",
    });
  }
  const fix = "Start Docker, or set DOCKER_HOST to a running engine.";
  return new ServiceMissing({ ...common, reason: plainReason(cause), fix });
}

/** Whether there is a socket, but this user may not open it. */
export function isPermissionDenied(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EACCES" || code === "EPERM";
}

/** Whether the engine has an image; false also if it does not answer, so that the caller looks closer. */
export async function dockerHasImage(tag: string, dockerHost?: string): Promise<boolean> {
  try {
    const found: { Id?: string } = JSON.parse(
      await get(dockerHost ?? DEFAULT_SOCKET, `/images/${encodeURIComponent(tag)}/json`, PROBE_MS),
    );
    return found.Id !== undefined;
  } catch {
    return false;
  }
}

function get(address: string, path: string, timeoutMs: number): Promise<string> {
  const url = new URL(address.replace(/^tcp:/, "http:"));
  if (url.protocol !== "unix:" && url.protocol !== "http:") {
    // TLS and ssh need certificates and helpers that only the sandbox's own client has: nothing is probed.
    return Promise.resolve("{}");
  }
  const where =
    url.protocol === "unix:"
      ? { socketPath: url.pathname }
      : { host: url.hostname, port: url.port === "" ? 2375 : Number(url.port) };
  return new Promise((resolve, reject) => {
    const call = request({ ...where, path, timeout: timeoutMs }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => (text += piece));
      response.on("end", () => resolve(text));
      response.on("error", reject);
    });
    call.on("timeout", () => call.destroy(new Error(`no answer in ${timeoutMs} ms`)));
    call.on("error", reject);
    call.end();
  });
}

function knock(address: string, timeoutMs: number): Promise<void> {
  const port = Number(/:(\d+)$/.exec(address)?.[1] ?? 7233);
  const host = address.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: timeoutMs }, () => {
      socket.destroy();
      resolve();
    });
    socket.on("timeout", () => socket.destroy(new Error(`no answer in ${timeoutMs} ms`)));
    socket.on("error", reject);
  });
}

export function withoutPassword(url: string): string {
  try {
    const { host, pathname, protocol } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return "an address that is not a URL";
  }
}
