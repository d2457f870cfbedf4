/**
 * Keeps the engine's history small (invariant 1): the payload converter that worker, client and workflow share refuses
 * payloads over 64 KB. It covers everything: workflow and activity input and result, signals, updates, queries, memo, and
 * what continue-as-new carries. It also runs in the workflow, so it uses neither Node nor another library.
 */
import {
  ApplicationFailure,
  DefaultPayloadConverter,
  type Payload,
  type PayloadConverter,
} from "@temporalio/common";
import { cutChars } from "../activities/text/cut.ts";

/** Source: requirement 2.1. */
export const MAX_PAYLOAD_BYTES = 65_536;

class GuardedConverter implements PayloadConverter {
  readonly #inner = new DefaultPayloadConverter();

  /** @throws ApplicationFailure `PayloadTooLarge`, not retryable: trying again would make the same payload */
  toPayload<T>(value: T): Payload {
    const payload = this.#inner.toPayload(value);
    const bytes = payload.data?.length ?? 0;
    if (bytes > MAX_PAYLOAD_BYTES) throw tooLarge(value, bytes);
    return payload;
  }

  fromPayload<T>(payload: Payload): T {
    return this.#inner.fromPayload(payload);
  }
}

function tooLarge(value: unknown, bytes: number): ApplicationFailure {
  return ApplicationFailure.create({
    type: "PayloadTooLarge",
    message:
      `A payload of ${bytes} bytes was refused: at most ${MAX_PAYLOAD_BYTES} may enter the history${largestField(value)}. ` +
      "Nothing was sent. Keep the content in Postgres and pass its id.",
    nonRetryable: true,
  });
}

/** Names the field to look at; never its content, which may be secret. */
function largestField(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "";
  let largest: { name: string; chars: number } | undefined;
  for (const [name, field] of Object.entries(value)) {
    const chars = JSON.stringify(field)?.length ?? 0;
    if (largest === undefined || chars > largest.chars) largest = { name, chars };
  }
  return largest === undefined ? "" : `; most of it is the field "${cutChars(largest.name, 60)}"`;
}

/** Temporal looks for this name in the file of `payloadConverterPath`. */
export const payloadConverter = new GuardedConverter();
