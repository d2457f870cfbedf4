import { ApplicationFailure, defaultPayloadConverter } from "@temporalio/common";
import { expect, test } from "vitest";
import { MAX_PAYLOAD_BYTES, payloadConverter } from "../../../temporal/payload-guard.ts";

/** JSON of a string is the string and two quotes. */
const ofBytes = (bytes: number) => "x".repeat(bytes - 2);

function refusal(value: unknown): ApplicationFailure {
  try {
    payloadConverter.toPayload(value);
  } catch (error) {
    if (error instanceof ApplicationFailure) return error;
    throw error;
  }
  throw new Error("it was let through");
}

test("a payload of exactly 64 KB passes, as Temporal's own converter makes it", () => {
  const value = ofBytes(MAX_PAYLOAD_BYTES);
  expect(payloadConverter.toPayload(value)).toEqual(defaultPayloadConverter.toPayload(value));
});

test("one byte more is refused, without retries", () => {
  const failure = refusal(ofBytes(MAX_PAYLOAD_BYTES + 1));
  expect(failure.type).toBe("PayloadTooLarge");
  expect(failure.nonRetryable).toBe(true);
});

test("bytes are counted, not characters", () => {
  expect(refusal("漢".repeat(MAX_PAYLOAD_BYTES / 3)).type).toBe("PayloadTooLarge");
});

test("the refusal names the largest field and shows nothing of its content", () => {
  const { message } = refusal({ step: 4, transcript: "secret ".repeat(20_000) });
  expect(message).toContain('"transcript"');
  expect(message).not.toContain("secret");
});

test("a payload that passes is unchanged", () => {
  const value = { step: 12, about: "npm test", calls: [{ name: "bash", readOnly: false }] };
  expect(payloadConverter.fromPayload(payloadConverter.toPayload(value))).toEqual(value);
});
