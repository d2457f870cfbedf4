/** Encrypted payloads for Temporal: keys, rotation, refusals; and the server that decrypts them for the Web UI. */
import { expect, it, onTestFinished } from "vitest";
import { randomBytes } from "node:crypto";
import type { ApplicationFailure, Payload } from "@temporalio/common";
import { secretsOf } from "../../../activities/redaction/secret-values.ts";
import { serveCodec } from "../../../client/serve/codec-server.ts";
import { parseCodecKeys, createCodec } from "../../../temporal/codec.ts";
import { payloadConverter } from "../../../temporal/payload-guard.ts";

const [OLD, NEW] = [randomBytes(32).toString("base64"), randomBytes(32).toString("base64")];
const keys = (setting: string) => parseCodecKeys(setting);
const of = (workflowId: string) => ({ type: "workflow", namespace: "default", workflowId }) as const;
const seal = async (setting: string, value: unknown, workflowId = "a"): Promise<Payload> => {
  const [payload] = await createCodec(keys(setting)).encode(
    [payloadConverter.toPayload(value)],
    of(workflowId),
  );
  return payload as Payload;
};
const open = async (setting: string, payload: Payload, workflowId = "a"): Promise<unknown> => {
  const [opened] = await createCodec(keys(setting)).decode([payload], of(workflowId));
  return payloadConverter.fromPayload(opened as Payload);
};
const failureOf = (outcome: Promise<unknown>) =>
  outcome.then(
    () => undefined,
    (error: ApplicationFailure) => error,
  );

it("decrypts with any of its keys, encrypts with the first, leaves plain payloads unchanged", async () => {
  const old = await seal(`one:${OLD}`, { say: "SECRET-WORD" });
  expect(JSON.stringify([old, Buffer.from(old.data ?? []).toString("latin1")])).not.toContain("SECRET-WORD");
  const both = `two:${NEW}, one:${OLD}`;
  expect(await open(both, old)).toEqual({ say: "SECRET-WORD" });
  const young = await seal(both, "x");
  expect(Buffer.from(young.metadata?.["key-id"] ?? []).toString()).toBe("two");
  const plain = payloadConverter.toPayload({ from: "before there were keys" });
  expect(await open(both, plain)).toEqual({ from: "before there were keys" });
  expect(await createCodec([]).encode([plain])).toEqual([plain]);
});

it("leaves payloads that others encrypted, and refuses ones too short to be ours", async () => {
  const encoding = Buffer.from("binary/encrypted");
  const foreign = { metadata: { encoding }, data: Buffer.from([1, 2]) };
  for (const setting of ["", `one:${OLD}`])
    expect(await createCodec(keys(setting)).decode([foreign])).toEqual([foreign]);
  const short = { metadata: { encoding, "key-id": Buffer.from("one") }, data: Buffer.from([1, 2]) };
  expect(await failureOf(open(`one:${OLD}`, short))).toMatchObject({ type: "CodecRefused" });
});

it("names the missing key, even if there is none at all, and lets the run wait", async () => {
  const payload = await seal(`one:${OLD}`, "x");
  for (const setting of [`two:${NEW}`, ""]) {
    const failure = await failureOf(open(setting, payload));
    expect(failure).toMatchObject({ type: "CodecKeyMissing", nonRetryable: false });
    expect(failure?.message).toMatch(/"one".*LONGHAUL_CODEC_KEYS/);
  }
});

it("refuses another workflow's payload, a changed one, and a wrong key of the same name", async () => {
  const payload = await seal(`one:${OLD}`, "x", "a");
  const renamed = { ...payload, metadata: { ...payload.metadata, "workflow-id": Buffer.from("b") } };
  const data = Buffer.from(payload.data ?? []);
  data[data.length - 1] = (data.at(-1) ?? 0) ^ 1;
  const refused = await Promise.all([
    failureOf(open(`one:${OLD}`, payload, "b")),
    failureOf(open(`one:${OLD}`, renamed, "b")),
    failureOf(open(`one:${OLD}`, { ...payload, data })),
    failureOf(open(`one:${NEW}`, payload)),
  ]);
  expect(refused.map((failure) => failure?.type)).toEqual(Array(4).fill("CodecRefused"));
});

it("decrypts a schedule's payload in the runs that it started, and in no others", async () => {
  const payload = await seal(`one:${OLD}`, "x", "nightly");
  expect(await open(`one:${OLD}`, payload, "nightly-2026-11-27T05:00:00Z")).toBe("x");
  for (const other of [
    "nightly-2",
    "nightly-2026-11-27",
    "nightlyx-2026-11-27T05:00:00Z",
    "2026-11-27T05:00:00Z",
  ])
    expect(await failureOf(open(`one:${OLD}`, payload, other)), other).toMatchObject({
      type: "CodecRefused",
    });
});

it("measures payloads before encryption", async () => {
  const text = "x".repeat(65_000);
  expect(await open(`one:${OLD}`, await seal(`one:${OLD}`, text))).toBe(text);
  expect(() => payloadConverter.toPayload("x".repeat(66_000))).toThrow(
    "A payload of 66002 bytes was refused",
  );
});

it("accepts keys of 32 bytes, each with its own name, and never shows one", () => {
  for (const wrong of [
    "one",
    `one:${randomBytes(16).toString("base64")}`,
    `one:${OLD},one:${NEW}`,
    `:${OLD}`,
  ])
    expect(() => keys(wrong), wrong).toThrow(
      expect.objectContaining({
        name: "WrongSettings",
        message: expect.stringContaining("LONGHAUL_CODEC_KEYS") as string,
      }),
    );
  expect(keys("")).toEqual([]);
  expect(secretsOf({ LONGHAUL_CODEC_KEYS: `two:${NEW},one:${OLD}` })).toEqual([NEW, OLD]);
});

it("encodes and decodes for the Web UI, for its pages alone and with the token", async () => {
  const ui = "http://127.0.0.1:8233";
  const codec = createCodec(keys(`one:${OLD}`));
  const server = await serveCodec({ codec, port: 0, token: "t0ken", origins: new Set([ui]) });
  onTestFinished(() => server.close());
  const ask = (path: string, headers: Record<string, string>, body: unknown) =>
    fetch(`${server.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const payload = { metadata: { encoding: btoa("json/plain") }, data: btoa('"SECRET-WORD"') };
  const sealed = (await (await ask("/t0ken/encode", { origin: ui }, { payloads: [payload] })).json()) as {
    payloads: { metadata: Record<string, string>; data: string }[];
  };
  expect(atob(sealed.payloads[0]?.metadata["encoding"] ?? "")).toBe("binary/encrypted");
  expect(atob(sealed.payloads[0]?.data ?? "")).not.toContain("SECRET-WORD");
  const opened = await ask("/decode", { authorization: "Bearer t0ken", "x-namespace": "default" }, sealed);
  expect(await opened.json()).toEqual({ payloads: [payload] });

  const preflight = await fetch(`${server.url}/t0ken/decode`, { method: "OPTIONS", headers: { origin: ui } });
  expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([204, ui]);
  const statuses = await Promise.all([
    ask("/decode", {}, sealed),
    ask("/wrong/decode", {}, sealed),
    ask("/t0ken/decode", { origin: "https://evil.example" }, sealed),
    ask("/t0ken/decode", {}, { payloads: [{ metadata: {}, data: "not base64!" }] }),
    ask("/t0ken/decode", {}, { payloads: [{ ...sealed.payloads[0], data: btoa("x".repeat(40)) }] }),
  ]);
  expect(statuses.map(({ status }) => status)).toEqual([401, 401, 403, 400, 422]);
});
