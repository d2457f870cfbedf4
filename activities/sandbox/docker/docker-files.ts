/** The port's `BoxFiles` over the way to a box. The rules are kept inside: box/files.py. */
import { toBase64, toBytes } from "./base64.ts";
import type { BoxLink } from "./supervisor-link.ts";
import type { Answer } from "./supervisor-stream.ts";
import type { BoxFiles, FileAnswer } from "../sandbox.ts";

export function createBoxFiles(link: BoxLink): BoxFiles {
  const ask = (action: string, path: string, fields: object = {}): Promise<Answer> =>
    link.request("file", { do: action, path, ...fields });
  return {
    async read(path, options = {}) {
      const answer = await ask("read", path, options);
      return toAnswer(
        answer["ok"] === true ? { ...answer, bytes: toBytes(answer["data"]), data: undefined } : answer,
      );
    },
    write: async (path, bytes, options = {}) =>
      toAnswer(await ask("write", path, { ...options, data: toBase64(bytes) })),
    remove: async (path, options = {}) => toAnswer(await ask("remove", path, options)),
    list: async (path, options = {}) => toAnswer(await ask("list", path, options)),
    async stat(path) {
      const answer = await ask("stat", path);
      return toAnswer(answer);
    },
  };
}

// What the supervisor sends is our own protocol, whose version was compared when the stream was made.
const toAnswer = <T>(answer: object): FileAnswer<T> => answer as FileAnswer<T>;
