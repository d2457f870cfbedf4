import { expect, test } from "vitest";
import {
  describeDifference,
  differenceOf,
  isDifferent,
  workerOrigin,
} from "../../../client/setup/fingerprint.ts";

const worker = workerOrigin({ OPENAI_API_KEY: "sk-one", DATABASE_URL: "postgres://x", HOME: "one" });

test("the same settings are no difference, whatever else the shell has", () => {
  const now = workerOrigin({ OPENAI_API_KEY: "sk-one", DATABASE_URL: "postgres://x", HOME: "two" });
  expect(isDifferent(differenceOf(worker, now))).toBe(false);
});

test("another key and a setting that is not there are told apart, and named", () => {
  const now = workerOrigin({ OPENAI_API_KEY: "sk-two" });
  const difference = differenceOf(worker, now);
  expect(difference).toEqual({ code: false, changed: ["OPENAI_API_KEY"], lacking: ["DATABASE_URL"] });
  expect(describeDifference(difference)).toBe("OPENAI_API_KEY and DATABASE_URL");
});

test("a worker of which nothing is known, from an older version, differs", () => {
  expect(differenceOf({}, worker)).toMatchObject({ code: true, changed: ["DATABASE_URL", "OPENAI_API_KEY"] });
});

test("no value can be read from it", () => {
  expect(JSON.stringify(worker)).not.toContain("sk-one");
});
