/** A request that is not taken. Each wire has its own form for it (error-body.ts). */

/** What went wrong, in no wire's form. */
export interface Fault {
  readonly status: number;
  readonly message: string;
  readonly code: string | null;
  readonly param: string | null;
  /** What the server asks to be waited; whole or broken seconds. */
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
