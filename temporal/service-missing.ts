/** Why a service, a namespace or a setting could not be used, as typed failures and in words for people. */
import { AuthoritiesUnusable, trustAuthorities } from "../activities/process/authorities.ts";
import { ProxyUnusable, readProxies } from "../activities/process/proxies.ts";
import { innermostReason } from "../activities/contract/errors.ts";

/** Settings with which no worker starts. The message's first line says where they are, and each further line what is wrong. */
export class WrongSettings extends Error {
  override readonly name = "WrongSettings";
}

/** A missing service, described as the client prints it before it ends with exit code 4. */
export interface MissingService {
  /** For people: `Postgres`, `Temporal`, `Docker engine`. */
  readonly service: string;
  /** Where it was looked for; no secrets. */
  readonly address: string;
  /** What is wrong, as a phrase after the service's name. Default: it does not answer at the address. */
  readonly problem?: string;
  /** One way to fix it. */
  readonly fix: string;
  /** What happened, in a few words. */
  readonly reason?: string;
  readonly cause?: unknown;
}

export class ServiceMissing extends Error {
  override readonly name = "ServiceMissing";
  readonly service: string;
  readonly address: string;
  readonly fix: string;
  /** What is wrong and why, as a phrase after the service's name. */
  readonly problem: string;

  constructor(missing: MissingService) {
    const reason = missing.reason === undefined ? "" : ` (${missing.reason})`;
    const problem = `${missing.problem ?? `does not answer at ${missing.address}`}${reason}`;
    super(`${missing.service} ${problem}. ${missing.fix}`, { cause: missing.cause });
    this.problem = problem;
    this.service = missing.service;
    this.address = missing.address;
    this.fix = missing.fix;
  }
}

/** What a wrong variable of the surroundings means. @throws the same error if it is no such one */
export function surroundingsMissing(error: unknown): ServiceMissing {
  if (error instanceof ProxyUnusable) return proxyMissing(error);
  if (!(error instanceof AuthoritiesUnusable)) throw error;
  const { variable, message } = error;
  return new ServiceMissing({
    service: "Certificate authorities",
    address: variable,
    problem: `cannot be used: ${message}`,
    fix: `Set ${variable} to a file with certificates in PEM that this program may read, or unset it.`,
    cause: error,
  });
}

/** At a start, so that what nothing can use ends it instead of every request. @throws ServiceMissing that names the variable */
export function checkSurroundings(environment: Readonly<Record<string, string | undefined>>): void {
  try {
    readProxies(environment);
    trustAuthorities(environment);
  } catch (error) {
    throw surroundingsMissing(error);
  }
}

/** For whoever connects to services. @throws ServiceMissing that names the variable */
export function trustNamedAuthorities(): readonly string[] {
  try {
    return trustAuthorities();
  } catch (error) {
    throw surroundingsMissing(error);
  }
}

export function proxyMissing(cause: ProxyUnusable): ServiceMissing {
  const { variable, message, fix } = cause;
  return new ServiceMissing({
    service: "The proxy",
    address: variable,
    problem: `cannot be used: ${message}`,
    fix,
    cause,
  });
}

/** gRPC's NOT_FOUND, used for many kinds of objects. */
const GRPC_NOT_FOUND = 5;

/** Whether Temporal reports that it has no such namespace, as a starting server does. */
export function isNamespaceMissing(status: { readonly code?: unknown; readonly details?: unknown }): boolean {
  return status.code === GRPC_NOT_FOUND && /^namespace\b.*\bnot found/i.test(String(status.details));
}

/** Whether an error or one of its causes says so. */
export function lacksNamespace(error: unknown): error is Error {
  for (let inner = error; inner instanceof Error; inner = inner.cause)
    if (isNamespaceMissing(inner as { code?: unknown })) return true;
  return false;
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the other side closed the connection",
  EPIPE: "the other side closed the connection",
  ENOTFOUND: "there is no host of this name",
  ETIMEDOUT: "there was no answer in time",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
};

/** The system's code stays visible, so that it can be searched for; any other reason is the innermost message. */
export function plainReason(error: unknown): string {
  // gRPC begins a message with its status, such as `14 UNAVAILABLE: `.
  const reason = innermostReason(error).replace(/^\d+ [A-Z_]+: /, "");
  const code = Object.keys(WORDS).find((name) => new RegExp(String.raw`\b${name}\b`).test(reason));
  return code === undefined ? reason : `${WORDS[code]}, ${code}`;
}
