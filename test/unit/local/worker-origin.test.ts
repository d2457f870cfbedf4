import { expect, test } from "vitest";
import { DEFAULT_IMAGE } from "../../../activities/config/sandbox-settings.ts";
import {
  describeDifference,
  compareOrigins,
  isDifferent,
  workerOrigin,
} from "../../../client/setup/worker-process.ts";

const worker = workerOrigin({ OPENAI_API_KEY: "sk-one", DATABASE_URL: "postgres://x", HOME: "one" });

test("equal settings are not a difference, whatever else the shell has", () => {
  const now = workerOrigin({ OPENAI_API_KEY: "sk-one", DATABASE_URL: "postgres://x", HOME: "two" });
  expect(isDifferent(compareOrigins(worker, now))).toBe(false);
});

test("a shell without an image means the default one, which set-up passed to the worker", () => {
  const started = workerOrigin({ OPENAI_API_KEY: "sk-one", SANDBOX_IMAGE: DEFAULT_IMAGE });
  expect(isDifferent(compareOrigins(started, workerOrigin({ OPENAI_API_KEY: "sk-one" })))).toBe(false);
  expect(compareOrigins(started, workerOrigin({ OPENAI_API_KEY: "sk-two" }))).toEqual({
    code: false,
    changed: ["OPENAI_API_KEY"],
    lacking: [],
  });
});

test("another key and a missing setting are distinguished, and named", () => {
  const now = workerOrigin({ OPENAI_API_KEY: "sk-two" });
  const difference = compareOrigins(worker, now);
  expect(difference).toEqual({ code: false, changed: ["OPENAI_API_KEY"], lacking: ["DATABASE_URL"] });
  expect(describeDifference(difference)).toBe("OPENAI_API_KEY and DATABASE_URL");
});

test("a worker of an older version, without a record, differs", () => {
  expect(compareOrigins({}, worker)).toMatchObject({
    code: true,
    changed: ["DATABASE_URL", "OPENAI_API_KEY", "SANDBOX_IMAGE"],
  });
});

test("no value can be read from the record", () => {
  expect(JSON.stringify(worker)).not.toContain("sk-one");
});
