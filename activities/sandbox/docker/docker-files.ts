/** The port's `SandboxFiles` over the way to a sandbox. The rules are kept inside: sandbox/files.py. */
import { toBase64, toBytes } from "./base64.ts";
import type { SupervisorLink } from "./supervisor-link.ts";
import type { Answer } from "./supervisor-stream.ts";
import type { SandboxFiles, FileAnswer } from "../sandbox.ts";

export function createSandboxFiles(link: SupervisorLink): SandboxFiles {
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
