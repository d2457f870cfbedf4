import { expect, test } from "vitest";
import { sources } from "./sources.ts";

/** What reads all of something that may have no end. */
const WHOLE =
  /(?<!\bz)\.(text|json|arrayBuffer|blob|bytes)\(\)|stream\/consumers|\b(gunzip|inflate|inflateRaw|unzip|brotliDecompress|zstdDecompress)Sync\((?![^)]*maxOutputLength)|\bcreate(Gunzip|Inflate|BrotliDecompress|ZstdDecompress|Unzip)\b/g;
/** Node's own fetch: what it answers is bounded by nothing. */
const FETCH = /(?<![.\w])fetch\(/g;

const ALLOWED: Readonly<Record<string, string>> = {
  "activities/process/bounded-body.ts": "the one place",
  "activities/sandbox/docker/checked-context.ts": "a Dockerfile, whose size is checked before",
  "activities/store/purge.ts": "a pack of ours, piece by piece",
  "activities/store/workspace-pack.ts": "a pack of ours, whose entries' sizes are counted",
  "client/setup/model-servers.ts": "reads by readJson",
  "client/setup/services.ts": "drops the body",
  "client/setup/temporal-binary.ts": "counts packed and unpacked bytes",
  "worker/send-notice.ts": "drops the body",
  "examples/rehearsal/server.ts": "requests of our own worker on loopback",
};

test("nothing reads a body of others whole but the one module that stops at a limit", () => {
  const readers = sources(/^(activities|temporal|worker|client|examples)\/.*\.ts$/)
    .filter(({ path }) => !/flashcards|^client\/serve\/page\//.test(path))
    .filter(({ text }) => {
      const code = text.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "");
      return [WHOLE, FETCH].some((pattern) => code.match(pattern) !== null);
    })
    .map(({ path }) => path);
  expect(readers.toSorted()).toEqual(Object.keys(ALLOWED).toSorted());
});
