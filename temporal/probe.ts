/** Checks whether a service answers. Each probe has a time limit, returns what it found, and fails with a fix. */
import { request as overPlain } from "node:http";
import { request as overTls, type RequestOptions } from "node:https";
import type { Connection } from "@temporalio/client";
import { temporalConnection } from "./connection.ts";
import {
  engineAddress,
  EngineSettingWrong,
  type EngineAddress,
} from "../activities/sandbox/docker/engine-address.ts";
import { ServiceMissing, lacksNamespace, plainReason, surroundingsMissing } from "./service-missing.ts";
import { theirWords, reasonOf } from "../activities/contract/errors.ts";
import { withTimeout, patiently, PROBE_MS, within, type Patience } from "./patience.ts";
import { readPostgresAddress } from "../activities/store/postgres-address.ts";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { GitAccess } from "../activities/git/git-access.ts";

/** Of an answer of the engine: an image with many labels has some 100 KB. */
const MAX_ANSWER_CHARS = 8_000_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** @returns such as `Temporal 1.29.1, namespace default`. @throws ServiceMissing */
export async function probeTemporal(
  address?: string,
  patience: Patience = within(PROBE_MS),
): Promise<string> {
  const { connection: options, namespace, listenAddress } = temporalConnection(address);
  const where = options.address ?? "127.0.0.1:7233";
  let connection: Connection | undefined;
  try {
    return await patiently("Temporal", listenAddress, patience, async (timeoutMs) => {
      const deadline = Date.now() + timeoutMs;
      // Loaded only here: loading it takes 0.2 s of a processor.
      const { Connection } = await import("@temporalio/client");
      connection = await Connection.connect({ ...options, connectTimeout: timeoutMs });
      const service = connection.workflowService;
      const info = await connection.withDeadline(deadline, async () => {
        await service.describeNamespace({ namespace });
        return service.getSystemInfo({});
      });
      return `Temporal ${info.serverVersion ?? "?"}, namespace ${namespace}`;
    });
  } catch (error) {
    throw temporalMissing(where, error);
  } finally {
    await connection?.close().catch(() => {});
  }
}

export function temporalMissing(address: string, cause: unknown): ServiceMissing {
  if (cause instanceof ServiceMissing) return cause;
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

/** @returns such as `Docker 28.2.2`. @throws ServiceMissing, also for settings with which no engine can be reached */
export async function probeDocker(environment?: Environment, timeoutMs = PROBE_MS): Promise<string> {
  let engineText = "";
  try {
    const engine = engineAddress(environment);
    engineText = engine.shown;
    const version = versionIn(await ask(engine, "/version", timeoutMs));
    if (version.Components?.some(({ Name }) => /podman/i.test(Name ?? "")) === true) throw podman(engineText);
    const unfit = unfitEngine(version);
    if (unfit !== undefined)
      throw new ServiceMissing({ service: "The engine", address: engineText, ...unfit });
    return `Docker ${version.Version ?? "?"}`;
  } catch (error) {
    throw dockerMissing(engineText, error);
  }
}

/** Of Docker 20.10: the oldest engine that the tests ran on. */
const OLDEST_API = [1, 41] as const;

/** What no sandbox can be made on. */
function unfitEngine({ ApiVersion: api = "", Os: os, Version: version = "?" }: EngineVersion) {
  const fix = "Set DOCKER_HOST to an engine of Docker 20.10 or newer that runs Linux containers.";
  const [major = 0, minor = 0] = api.split(".").map(Number);
  if (os !== undefined && os !== "linux")
    return { problem: `runs ${os} containers, and sandboxes are Linux`, fix };
  if (api !== "" && (major < OLDEST_API[0] || (major === OLDEST_API[0] && minor < OLDEST_API[1])))
    return {
      problem: `is too old (Docker ${version}, API ${api}; needed: API ${OLDEST_API.join(".")})`,
      fix,
    };
  return undefined;
}

interface EngineVersion {
  readonly Version?: string;
  readonly ApiVersion?: string;
  readonly Os?: string;
  readonly Components?: readonly { readonly Name?: string }[];
}

/** Something answers, but not as an engine: a proxy, a login page, another service. */
class OtherAnswer extends Error {
  override readonly name = "OtherAnswer";
}

/** @throws OtherAnswer if it is not an engine's */
function versionIn(answer: unknown): EngineVersion {
  if (
    typeof answer === "object" &&
    answer !== null &&
    ["Version", "ApiVersion"].some((name) => name in answer)
  )
    return answer;
  throw new OtherAnswer("its answer names no version");
}

/** Found before anything starts: it reports and sets up containers otherwise, so a sandbox's profile cannot be proved there. */
const podman = (address: string): ServiceMissing =>
  new ServiceMissing({
    service: "The engine",
    address,
    problem: `at ${address} is Podman, which is not supported`,
    reason: "a sandbox's profile cannot be proved on it",
    fix: "Set DOCKER_HOST to a Docker engine: dockerd, also rootless, Docker Desktop, Colima or Rancher Desktop with moby.",
  });

export function dockerMissing(address: string, cause: unknown): ServiceMissing {
  if (cause instanceof ServiceMissing) return cause;
  const common = { service: "Docker engine", address, cause };
  if (cause instanceof EngineSettingWrong)
    return new ServiceMissing({
      ...common,
      problem: `cannot be reached: ${cause.message}`,
      fix: "`docker version` in the same shell shows whether the setting is right.",
    });
  if (isPermissionDenied(cause)) {
    return new ServiceMissing({
      ...common,
      problem: `does not let this user in at ${address}`,
      reason: "permission denied",
      fix: "Add yourself to the group docker, then log in again: sudo usermod -aG docker $USER",
    });
  }
  if (cause instanceof OtherAnswer && !isTlsTrouble(cause))
    return new ServiceMissing({
      ...common,
      problem: `does not answer as one at ${address}`,
      reason: cause.message,
      fix: "Check that DOCKER_HOST is an engine's address, and that no proxy or login page is in between.",
    });
  const fix = isTlsTrouble(cause)
    ? "Check DOCKER_TLS_VERIFY and DOCKER_CERT_PATH (ca.pem, cert.pem and key.pem of this engine)."
    : "Start Docker, or set DOCKER_HOST to a running engine.";
  return new ServiceMissing({ ...common, reason: plainReason(cause), fix });
}

/** How Node and the engine say that the two sides disagree about TLS or certificates. */
const isTlsTrouble = (error: unknown): boolean =>
  error instanceof Error &&
  /\bCERT|certificate|self-signed|unable to verify|EPROTO|TLS|SSL|HTTP request to an HTTPS server/i.test(
    `${"code" in error ? String(error.code) : ""} ${error.message}`,
  );

/** Whether there is a socket, but this user may not open it. */
export function isPermissionDenied(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EACCES" || code === "EPERM";
}

/** Whether the engine has an image; false also if it does not answer, so that the caller looks closer. */
export async function dockerHasImage(tag: string): Promise<boolean> {
  try {
    const path = `/images/${encodeURIComponent(tag)}/json`;
    const answer = (await ask(engineAddress(), path, PROBE_MS)) as { Id?: string };
    return answer.Id !== undefined;
  } catch {
    return false;
  }
}

/**
 * One question to the engine. The engine's own client is loaded only for ssh: it takes 0.13 s of a processor (measured 2026-11), and
 * each start with all services running comes by here.
 */
async function ask({ client }: EngineAddress, path: string, timeoutMs: number): Promise<unknown> {
  if (client.protocol !== "ssh") return jsonIn(await get(client, path, timeoutMs));
  const { connectDocker } = await import("../activities/sandbox/docker/connect-docker.ts");
  const modem = connectDocker(client, timeoutMs).modem as {
    dial(request: object, answered: (error: unknown, answer?: unknown) => void): void;
  };
  const statusCodes = { 200: true, 500: "server error" };
  const reply = new Promise((resolve, reject) =>
    modem.dial({ path, method: "GET", statusCodes }, (error, answer) =>
      error ? reject(error) : resolve(answer),
    ),
  );
  return withTimeout(reply, timeoutMs);
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new OtherAnswer(`no JSON: ${theirWords(text) || "an empty answer"}`);
  }
}

function get(client: EngineAddress["client"], path: string, timeoutMs: number): Promise<string> {
  const { protocol, port, ...options } = client;
  const request = protocol === "https" ? overTls : overPlain;
  return new Promise((resolve, reject) => {
    const where = {
      ...options,
      port: port === undefined ? undefined : Number(port),
      path,
      timeout: timeoutMs,
    } as RequestOptions;
    const call = request(where, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
        if (text.length > MAX_ANSWER_CHARS) response.destroy(new OtherAnswer("its answer is too long"));
      });
      response.on("end", () =>
        response.statusCode === 200
          ? resolve(text)
          : reject(
              new OtherAnswer(
                [`it answered with ${response.statusCode}`, theirWords(text)].filter(Boolean).join(": "),
              ),
            ),
      );
      response.on("error", reject);
    });
    call.on("timeout", () => call.destroy(new Error(`no answer in ${timeoutMs} ms`)));
    call.on("error", reject);
    call.end();
  });
}

/** A URL as people may see it. */
export function withoutPassword(url: string): string {
  try {
    if (url.startsWith("postgres")) return readPostgresAddress(url).shown;
    const { host, pathname, protocol } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return "an address that cannot be read";
  }
}

/** @throws ServiceMissing if the folder for repositories cannot be written to, or a file of certificate authorities cannot be read */
export async function checkGit({ folder, trust }: Pick<GitAccess, "folder" | "trust">): Promise<void> {
  const probe = join(folder, `probe-${process.pid}`);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(probe, "");
    await rm(probe);
  } catch (cause) {
    throw new ServiceMissing({
      service: "The folder for repositories",
      address: folder,
      problem: `cannot be written to: ${folder}`,
      reason: reasonOf(cause),
      fix: "Set LONGHAUL_GIT_FOLDER to a folder that the worker may write to; without it, the folder is below XDG_DATA_HOME or HOME.",
      cause,
    });
  }
  try {
    trust();
  } catch (cause) {
    throw surroundingsMissing(cause);
  }
}
