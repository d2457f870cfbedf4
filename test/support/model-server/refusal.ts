/** A refused request. Each wire has its own form for it (error-body.ts). */

/** What went wrong, independent of the wire. */
export interface Fault {
  readonly status: number;
  readonly message: string;
  readonly code: string | null;
  readonly param: string | null;
  /** The wait that the server asks for, in whole or fractional seconds. */
  readonly retryAfterSeconds?: number;
}

/** Thrown by parsing and checking; becomes the HTTP answer. */
export class Refusal extends Error implements Fault {
  override readonly name = "Refusal";
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;

  constructor(status: number, message: string, code: string | null = null, param: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
  }
}
