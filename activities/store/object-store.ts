/** The object store for packs that are too large for Postgres: any service with Amazon's S3 interface (`LONGHAUL_STORE`). */
import { Readable } from "node:stream";
import type * as S3 from "@aws-sdk/client-s3";
import { fatal, retryable } from "../contract/failures.ts";
import type { StoredBytes } from "./workspace-pack.ts";

export interface ObjectStore {
  /** Its address, without what is secret. */
  readonly address: string;
  /** Stores an object, or replaces it. @throws StoreUnavailable (retryable) */
  put(key: string, content: StoredBytes): Promise<void>;
  /** Its bytes, piece by piece. @throws WorkspaceLost (fatal) if it is not there, StoreUnavailable (retryable) */
  read(key: string): AsyncIterable<Uint8Array>;
  /** Idempotent. @throws StoreUnavailable (retryable) */
  remove(keys: readonly string[]): Promise<void>;
}

interface StoreAddress {
  readonly bucket: string;
  /** Empty, or ends with `/`. */
  readonly prefix: string;
  readonly endpoint: string | undefined;
  /** Undefined: where Amazon's tools find it. */
  readonly region: string | undefined;
}

/** Where services that have no regions expect requests to be for. Source: Amazon's SDKs, their first region. */
const ANY_REGION = "us-east-1";
const FORM = "s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION";

/** @throws RangeError that says what an address looks like */
export function readStoreAddress(text: string): StoreAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const unknown = [...(url?.searchParams.keys() ?? [])].find(
    (name) => !["endpoint", "region"].includes(name),
  );
  if (url?.protocol !== "s3:" || url.hostname === "" || url.username !== "" || unknown !== undefined)
    throw new RangeError(
      `not an address such as ${FORM}${unknown === undefined ? "" : `: ${unknown} is not known`}. Credentials are found as Amazon's tools find them: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, a role.`,
    );
  const endpoint = url.searchParams.get("endpoint") ?? undefined;
  if (endpoint !== undefined && !/^https?:$/.test(URL.canParse(endpoint) ? new URL(endpoint).protocol : ""))
    throw new RangeError("endpoint is not an address that begins with https:// or http://");
  const path = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, "");
  return {
    bucket: url.hostname,
    prefix: path === "" ? "" : `${path}/`,
    endpoint,
    region: url.searchParams.get("region") ?? (endpoint === undefined ? undefined : ANY_REGION),
  };
}

/** Until it is connected, and between two answers. Chosen: as for Postgres. */
const CONNECT_MS = 5_000;
const SILENCE_MS = 45_000;
/** Of one part of an upload. Source: S3 takes at most 10,000 parts, so 16 MiB allow 156 GiB; two are in memory. */
const PART_BYTES = 16 * 2 ** 20;
const PARTS_AT_ONCE = 2;
/** Keys in one request. Source: S3's DeleteObjects. */
const MAX_REMOVED = 1_000;

/** The SDK is loaded when the store is first used. @throws RangeError, as `readStoreAddress` */
export function openObjectStore(text: string): ObjectStore {
  const { bucket, prefix, endpoint, region } = readStoreAddress(text);
  const address = `s3://${bucket}/${prefix}${endpoint === undefined ? "" : ` at ${endpoint}`}`;
  let loading: ReturnType<typeof load> | undefined;
  const load = async () => {
    const [sdk, { Upload }] = await Promise.all([
      import("@aws-sdk/client-s3"),
      import("@aws-sdk/lib-storage"),
    ]);
    // A service at an own address seldom has a host name for each bucket.
    const service = endpoint === undefined ? {} : { endpoint, forcePathStyle: true };
    const requestHandler = { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS };
    const where = region === undefined ? service : { ...service, region };
    return { sdk, Upload, client: new sdk.S3Client({ requestHandler, ...where }) };
  };
  const request = async <T>(body: (loaded: Awaited<ReturnType<typeof load>>) => Promise<T>): Promise<T> => {
    try {
      return await body(await (loading ??= load()));
    } catch (error) {
      throw named(error, address);
    }
  };
  return {
    address,
    put: (key, content) =>
      request(async ({ Upload, client }) => {
        const Body = Readable.from(content.pieces(), { objectMode: false });
        const params = { Bucket: bucket, Key: prefix + key, Body };
        const upload = new Upload({ client, params, partSize: PART_BYTES, queueSize: PARTS_AT_ONCE });
        await upload.done();
      }),
    async *read(key) {
      const body = await request(({ sdk, client }) => contentOf(client, sdk, { bucket, key: prefix + key }));
      try {
        for await (const piece of body) yield piece as Uint8Array;
      } catch (error) {
        throw named(error, address);
      }
    },
    remove: (keys) =>
      request(async ({ sdk, client }) => {
        for (let at = 0; at < keys.length; at += MAX_REMOVED) {
          const Objects = keys.slice(at, at + MAX_REMOVED).map((key) => ({ Key: prefix + key }));
          const removal = new sdk.DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } });
          const { Errors: [error] = [] } = await client.send(removal);
          if (error !== undefined) throw new Error(`${error.Key}: ${error.Message ?? error.Code}`);
        }
      }),
  };
}

async function contentOf(
  client: S3.S3Client,
  sdk: typeof S3,
  { bucket, key }: { readonly bucket: string; readonly key: string },
): Promise<Readable> {
  try {
    const { Body } = await client.send(new sdk.GetObjectCommand({ Bucket: bucket, Key: key }));
    if (!(Body instanceof Readable)) throw new Error("the answer has no content");
    return Body;
  } catch (error) {
    if (!(error instanceof sdk.NoSuchKey)) throw error;
    throw fatal(
      "WorkspaceLost",
      `A save of the session's files is not in the object store any more: ${key} in ${bucket}. The conversation, all other saves and the sandbox are kept as they are. Bring the object back from a backup, or go on from a step before that save: longhaul retry ID --from-step N.`,
      error,
    );
  }
}

/** Failures that say what they are stay. */
function named(error: unknown, address: string): unknown {
  if (error instanceof Error && error.name === "ApplicationFailure") return error;
  const reason = error instanceof Error ? error.message || error.name : String(error);
  return retryable(
    "StoreUnavailable",
    `The object store ${address} (LONGHAUL_STORE) did not do what it was asked: ${reason}. What is saved is kept. It will be retried.`,
    { cause: error },
  );
}
