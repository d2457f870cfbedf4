/** A service that is not there, in the words the client prints before it ends with exit code 4. */
export interface MissingService {
  /** For people: `Postgres`, `Temporal`, `Docker engine`. */
  readonly service: string;
  /** Where it was looked for; no secrets. */
  readonly address: string;
  /** One way to mend it. */
  readonly mend: string;
  /** What happened, in a few words. */
  readonly reason?: string;
  readonly cause?: unknown;
}

export class ServiceMissing extends Error {
  override readonly name = "ServiceMissing";
  readonly service: string;
  readonly address: string;
  readonly mend: string;

  constructor(missing: MissingService) {
    const reason = missing.reason === undefined ? "" : ` (${missing.reason})`;
    super(`${missing.service} does not answer at ${missing.address}${reason}. ${missing.mend}`, {
      cause: missing.cause,
    });
    this.service = missing.service;
    this.address = missing.address;
    this.mend = missing.mend;
  }
}
