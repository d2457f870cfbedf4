/** The real service's refusals: status and body as OpenAI sends them. Source: API error texts seen up to 2026-11. */
import type { HttpError } from "./wire.ts";

/** Thrown by parsing and checking; becomes the HTTP answer. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly http: HttpError;

  constructor(status: number, message: string, code: string | null = null, param: string | null = null) {
    super(message);
    const type = status === 401 ? "authentication_error" : "invalid_request_error";
    this.http = { status, body: { error: { message, type, param, code } } };
  }
}
