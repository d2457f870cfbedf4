/**
 * A payload codec that encrypts what Temporal sees, by AES-256-GCM. The first key encrypts, all keys decrypt. It is always
 * installed: without keys it leaves payloads as they are, and names the missing key if a payload is encrypted.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { ApplicationFailure, type Payload, type PayloadCodec, type DataConverter } from "@temporalio/common";
import { WrongSettings } from "./service-missing.ts";
import type { Client } from "@temporalio/client";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

export interface CodecKey {
  /** Stored with each payload, unencrypted. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

const VARIABLE = "LONGHAUL_CODEC_KEYS";
/** The name in Temporal's own samples, which its tools recognise. */
const ENCODING = "binary/encrypted";
const ALGORITHM = "aes-256-gcm";
const [KEY_BYTES, IV_BYTES, TAG_BYTES, LENGTH_BYTES] = [32, 12, 16, 4];

/**
 * `id:base64,id:base64`, 32 bytes each. An empty or absent value means no keys.
 * @throws WrongSettings that says what is wrong, without a key
 */
export function parseCodecKeys(setting: string | undefined): CodecKey[] {
  const keys = (setting ?? "").split(",").flatMap((entry) => {
    const text = entry.trim();
    if (text === "") return [];
    const [, id = "", base64 = ""] = /^([\w.-]{1,64}):([\w+/=-]+)$/.exec(text) ?? [];
    const key = Buffer.from(base64, "base64");
    if (id === "" || key.length !== KEY_BYTES)
      throw new WrongSettings(
        `${VARIABLE} must be id:base64,id:base64 with 32 bytes each; ${id === "" ? "an entry" : `the entry "${id}"`} is not of that form. To make a key: openssl rand -base64 32`,
      );
    return [{ id, key }];
  });
  if (new Set(keys.map(({ id }) => id)).size < keys.length)
    throw new WrongSettings(`${VARIABLE} has an id twice.`);
  return keys;
}

/** The payload's workflow; without one (as in a codec server) encryption binds to none, and decryption checks none. */
type Context = { readonly workflowId?: string | undefined } | undefined;

export function createCodec(keys: readonly CodecKey[]): PayloadCodec {
  const [first] = keys;
  return {
    async encode(payloads, context?: Context) {
      return first === undefined ? payloads : payloads.map((payload) => encrypt(payload, first, context));
    },
    async decode(payloads, context?: Context) {
      return payloads.map((payload) => decrypt(payload, keys, context));
    },
  };
}

function encrypt(payload: Payload, { id, key }: CodecKey, context: Context): Payload {
  const workflowId = context?.workflowId ?? "";
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, iv);
  cipher.setAAD(boundTo(id, workflowId));
  const sealed = Buffer.concat([cipher.update(packed(payload)), cipher.final()]);
  return {
    metadata: { encoding: bytes(ENCODING), "key-id": bytes(id), "workflow-id": bytes(workflowId) },
    data: Buffer.concat([iv, cipher.getAuthTag(), sealed]),
  };
}

/** @throws ApplicationFailure `CodecKeyMissing` (retryable), `CodecRefused` (retryable: the run must wait, not fail) */
function decrypt(payload: Payload, keys: readonly CodecKey[], context: Context): Payload {
  const id = text(payload, "key-id");
  // A payload in an unknown encoding, whatever its name, is dropped with a remark.
  if (text(payload, "encoding") !== ENCODING || id === "") return payload;
  const workflowId = text(payload, "workflow-id");
  const known = keys.find((key) => key.id === id);
  if (known === undefined)
    throw failure(
      "CodecKeyMissing",
      `Temporal's data of this run is encrypted with the key "${id}", which is not in ${VARIABLE} of the process that reads it. The run waits: add the key there, after the first one, which encrypts.`,
    );
  const readerId = context?.workflowId;
  if (readerId !== undefined && workflowId !== "" && !isOf(readerId, workflowId))
    throw failure(
      "CodecRefused",
      `A payload of workflow ${workflowId} was found in workflow ${readerId}, so it was not read. The run waits.`,
    );
  const data = Buffer.from(payload.data ?? []);
  try {
    const decipher = createDecipheriv(ALGORITHM, known.key, data.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(boundTo(id, workflowId));
    decipher.setAuthTag(data.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    return unpacked(Buffer.concat([decipher.update(data.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]));
  } catch {
    throw failure(
      "CodecRefused",
      `A payload cannot be decrypted with the key "${id}": it was changed, moved, or encrypted with another key of that name. The run waits.`,
    );
  }
}

/** A schedule's payloads are encrypted for the id that it names; Temporal appends the start time for the id of each run. */
const isOf = (readerId: string, workflowId: string): boolean =>
  readerId === workflowId ||
  (readerId.startsWith(`${workflowId}-`) &&
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(readerId.slice(workflowId.length + 1)));

const boundTo = (keyId: string, workflowId: string): Buffer => bytes(JSON.stringify([keyId, workflowId]));

/** Metadata and data in one buffer: the metadata's length, the metadata, the data. */
function packed({ metadata, data }: Payload): Buffer {
  const names = Object.entries(metadata ?? {}).map(([name, value]) => [
    name,
    Buffer.from(value).toString("base64"),
  ]);
  const head = bytes(JSON.stringify(Object.fromEntries(names)));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(head.length);
  return Buffer.concat([length, head, data ?? new Uint8Array()]);
}

function unpacked(all: Buffer): Payload {
  const end = LENGTH_BYTES + all.readUInt32BE();
  const names = JSON.parse(all.subarray(LENGTH_BYTES, end).toString()) as Record<string, string>;
  return {
    metadata: Object.fromEntries(
      Object.entries(names).map(([name, value]) => [name, Buffer.from(value, "base64")]),
    ),
    data: all.subarray(end),
  };
}

const bytes = (value: string): Buffer => Buffer.from(value);

function text({ metadata }: Payload, name: string): string {
  return Buffer.from(metadata?.[name] ?? []).toString();
}

function failure(type: "CodecKeyMissing" | "CodecRefused", message: string): ApplicationFailure {
  return ApplicationFailure.create({ type, message, nonRetryable: false });
}

/**
 * With the client's keys.
 * @param workflowId undefined: whichever workflow they were encrypted for
 * @throws CodecKeyMissing if a key is
 */
export function decodePayloads(
  client: Client,
  workflowId: string | undefined,
  payloads: Payload[],
): Promise<Payload[]> {
  const [codec = createCodec([])] = client.workflow.options.loadedDataConverter.payloadCodecs;
  return workflowId === undefined
    ? codec.decode(payloads)
    : codec.decode(payloads, { type: "workflow", namespace: client.options.namespace, workflowId });
}

/** `.ts` here, `.js` in the library that is built for consumers. */
const extension = extname(fileURLToPath(import.meta.url));
const at = (name: string) => fileURLToPath(new URL(`./${name}${extension}`, import.meta.url));

export const payloadConverterPath = at("payload-guard");

/** The converter inside the workflow: a payload from outside that cannot be decoded does not fail the workflow task. */
export const workflowPayloadConverterPath = at("workflow-payloads");

/** Used only with keys: without them it would merely hide texts from the Web UI. */
export const encodedFailuresPath = at("encoded-failures");

/** @param keys the first encrypts; without any, nothing is encrypted */
export function createDataConverter(keys: readonly CodecKey[]): DataConverter {
  return {
    payloadConverterPath,
    payloadCodecs: [createCodec(keys)],
    failureConverterPath: keys.length === 0 ? undefined : encodedFailuresPath,
  };
}

export const dataConverter = createDataConverter([]);
