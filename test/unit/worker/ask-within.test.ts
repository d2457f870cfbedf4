import { expect, it } from "vitest";
import { askWithin, NoAnswer } from "../../../temporal/patience.ts";

/** A client that shows the signal of its last request. */
function client() {
  const seen: AbortSignal[] = [];
  const withAbortSignal = <T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> => {
    seen.push(signal);
    return ask();
  };
  return { withAbortSignal, signal: () => seen.at(-1) };
}

it("cancels a request that gets no answer in time, so that no closed connection repeats it", async () => {
  const asked = client();
  const answer = askWithin(asked, 20, () => new Promise(() => undefined));
  expect(asked.signal()?.aborted).toBe(false);
  await expect(answer).rejects.toBeInstanceOf(NoAnswer);
  expect(asked.signal()?.aborted).toBe(true);
});

it("returns the answer, and fails as the request does", async () => {
  const asked = client();
  await expect(askWithin(asked, 1_000, async () => 1)).resolves.toBe(1);
  await expect(askWithin(asked, 1_000, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
});
