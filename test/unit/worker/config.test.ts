import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { providerConfigSchema } from "../../../activities/config/model-target.ts";
import { readWorkerConfig } from "../../../worker/config.ts";
import { ServiceMissing } from "../../../temporal/service-missing.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const DATABASE_URL = "postgres://longhaul:p%40ss-word-1@127.0.0.1:5432/longhaul";

test("a worker needs only a database's address", () => {
  const config = readWorkerConfig({ DATABASE_URL });
  expect(config.queues).toEqual({
    workflows: "longhaul",
    models: "longhaul",
    sandbox: "longhaul",
    admin: "longhaul",
    modelCallsPerSecond: undefined,
  });
  expect(config.heartbeatMs).toBe(10_000);
  expect(config.shutdownGraceMs).toBe(10_000);
  expect(config.providers).toEqual({});
});

test("without a database's address it names the variable and the remedy", () => {
  expect(() => readWorkerConfig({ DATABASE_URL: "" })).toThrow(ServiceMissing);
});

test("every wrong variable is listed at once", () => {
  const wrong = { DATABASE_URL, LONGHAUL_HEARTBEAT_MS: "soon", LONGHAUL_LOG_LEVEL: "loud" };
  expect(() => readWorkerConfig(wrong)).toThrow(/LONGHAUL_HEARTBEAT_MS[\s\S]*LONGHAUL_LOG_LEVEL/);
});

test("a wrong variable is answered with the form of a right value, and an example or the choices", () => {
  const wrong = {
    DATABASE_URL,
    LONGHAUL_REAP_MINUTES: "x",
    LONGHAUL_ACTIVITY_SLOTS: "1.5",
    LONGHAUL_NOTIFY_URL: "hooks",
    LONGHAUL_MODEL_CALLS_PER_SECOND: "0",
    LONGHAUL_OLD_RUNC: "no",
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    SANDBOX_IMAGE: "a b",
  };
  const text = messageOf(() => readWorkerConfig(wrong));
  expect(text.split("\n").slice(1).toSorted()).toEqual([
    "LONGHAUL_ACTIVITY_SLOTS: expected a whole number above 0, such as 100",
    "LONGHAUL_MODEL_CALLS_PER_SECOND: expected a number above 0, such as 2.5",
    "LONGHAUL_NOTIFY_URL: expected an address such as https://hooks.example.com/longhaul",
    "LONGHAUL_OLD_RUNC: expected warn or refuse",
    "LONGHAUL_REAP_MINUTES: expected a whole number above 0, such as 10",
    "OTEL_EXPORTER_OTLP_PROTOCOL: expected http/protobuf",
    expect.stringMatching(/^SANDBOX_IMAGE: expected the name of an image, such as node:24/),
  ]);
});

function messageOf(fails: () => unknown): string {
  try {
    fails();
  } catch (error) {
    return (error as Error).message;
  }
  return expect.fail("it does not fail");
}

test("an unreadable policy, or one with an unknown rule, prevents the worker's start", () => {
  const folder = emptyFolder();
  const LONGHAUL_POLICY = join(folder, "policy.yaml");
  expect(() => readWorkerConfig({ DATABASE_URL, LONGHAUL_POLICY })).toThrow(/nothing was started[^]*ENOENT/);
  writeFileSync(LONGHAUL_POLICY, "network: [none]\nmax: {memory: lots}\n");
  expect(() => readWorkerConfig({ DATABASE_URL, LONGHAUL_POLICY })).toThrow(/max.memory[^]*network/);
  writeFileSync(LONGHAUL_POLICY, "networks: [none]\nmax: {memory: 4g}\n");
  const { policy } = readWorkerConfig({ DATABASE_URL, LONGHAUL_POLICY });
  expect(policy).toEqual({
    networks: ["none"],
    max: { memory: "4g" },
    rates: {},
    retention: {},
    onBudget: "ask",
  });
});

test("an empty variable counts as unset", () => {
  const config = readWorkerConfig({
    DATABASE_URL,
    LONGHAUL_TASK_QUEUE: "",
    OPENAI_API_KEY: "",
    LONGHAUL_ACTIVITY_SLOTS: "",
  });
  expect(config.queues.workflows).toBe("longhaul");
  expect(config.providers).toEqual({});
  expect(config.activitySlots).toBe(100);
});

test("keys, tokens and passwords in addresses are secrets, as written and decoded", () => {
  const { secrets } = readWorkerConfig({
    DATABASE_URL,
    OPENAI_API_KEY: "sk-123456789",
    GITHUB_TOKEN: "ghp_abcdef",
    EDITOR: "vi",
  });
  expect(secrets).toEqual(
    expect.arrayContaining(["sk-123456789", "ghp_abcdef", "p%40ss-word-1", "p@ss-word-1"]),
  );
  expect(secrets).not.toContain("vi");
});

test("a password that repeats the user's name is a word, which texts keep", () => {
  const { secrets } = readWorkerConfig({ DATABASE_URL: "postgres://longhaul:longhaul@db:5432/longhaul" });
  expect(secrets).toEqual([]);
});

test("a session's provider is given keys of models alone, not the worker's other secrets", () => {
  const keys = { OPENAI_API_KEY: "a", ACME_API_TOKEN: "b", AZURE_OPENAI_BASE_URL: "http://x/v1" };
  const others = { GITHUB_TOKEN: "c", TEMPORAL_API_KEY: "d", AWS_SECRET_ACCESS_KEY: "e", DATABASE_URL };
  expect(readWorkerConfig({ ...keys, ...others }).providers).toEqual(keys);
  for (const name of Object.keys(others))
    expect(providerConfigSchema.safeParse({ keyEnv: name }).success, name).toBe(false);
  expect(providerConfigSchema.safeParse({ headersEnv: { "x-key": "DATABASE_URL" } }).success).toBe(false);
});

test.each([
  [{ LONGHAUL_MODEL_CALLS_PER_SECOND: "5" }, /LONGHAUL_MODELS_QUEUE/],
  [{ LONGHAUL_MODEL_CALLS_PER_SECOND: "5", LONGHAUL_MODELS_QUEUE: "longhaul" }, /LONGHAUL_MODELS_QUEUE/],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "notaurl" }, /OTEL_EXPORTER_OTLP_ENDPOINT/],
])("%j would have no effect, so the worker does not start", (settings, text) => {
  expect(() => readWorkerConfig({ DATABASE_URL, ...settings })).toThrow(text);
});

test("a rate holds on a queue of the models alone", () => {
  const settings = { LONGHAUL_MODEL_CALLS_PER_SECOND: "0.5", LONGHAUL_MODELS_QUEUE: "models" };
  expect(readWorkerConfig({ DATABASE_URL, ...settings }).queues).toMatchObject({
    models: "models",
    modelCallsPerSecond: 0.5,
  });
});

test("a host's part of the disk is a share or a size, by default a fifth", () => {
  const limit = (LONGHAUL_HOST_DISK?: string) =>
    readWorkerConfig({ DATABASE_URL, LONGHAUL_HOST_DISK }).hostDisk;
  expect(limit()).toEqual({ share: 0.2 });
  expect(limit("")).toEqual({ share: 0.2 });
  expect([limit("12.5%"), limit("100%"), limit("0%")]).toEqual([
    { share: 0.125 },
    { share: 1 },
    { share: 0 },
  ]);
  expect([limit("50g"), limit("0m")]).toEqual([{ bytes: 50 * 2 ** 30 }, { bytes: 0 }]);
  for (const wrong of ["20", "120%", "-1%", "50gb", "much"])
    expect(() => limit(wrong)).toThrow(
      /LONGHAUL_HOST_DISK: expected a share of the disk such as 20%, or a size such as 50g/,
    );
});
