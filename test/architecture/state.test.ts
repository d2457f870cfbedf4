/** What a worker remembers is in instances that it makes: two workers of one process, as in tests, share nothing that counts. */
import { expect, test } from "vitest";
import { sources } from "./sources.ts";

const STATE = /^(export )?(let |const \w+(: [^=]+)? = new (Map|Set|WeakMap|WeakSet)\b[^(]*\(\);)/gm;

/** What holds for the whole process, and answers that are the same whoever asks. */
const SHARED: Readonly<Record<string, string>> = {
  "activities/context/request.ts": "sizes of tools, by their registry",
  "activities/forge/credential-memory.ts": "a forge's limits and last answers, by the credential",
  "activities/forge/gitea-description.ts": "what a server says that it can do, by its address",
  "activities/process/remote-fetch.ts": "the process' way out, opened when first needed",
  "activities/git/own-repositories.ts": "paths that this process is making on its disk",
  "activities/mcp/answers.ts": "pages of an answer, by their connection",
  "activities/mcp/protocol-client.ts": "facts about a connection, by it",
  "activities/mcp/sandbox-servers.ts": "what a program said first, by its digest",
  "activities/process/authorities.ts": "whom this process trusts",
  "activities/sandbox/agent/sources.ts": "our own programs' text",
  "activities/sandbox/shared-work.ts": "turns at what the process has once",
  "activities/store/mcp.ts": "lists of tools, by their digest",
  "activities/store/stored-settings.ts": "settings that were checked, by their text",
  "activities/tools/mcp-tools.ts": "registries, by what they are made of",
  "activities/tools/reading/read-input.ts": "schemas, by what they are made of",
  "activities/tools/session-tools.ts": "registries, by what they are made of",
  "activities/transcript/view.ts": "words for a size",
};

test("modules of the worker hold no state but what is the process' own or the same for everyone", () => {
  const found = sources(/^(activities|worker|temporal)\/.*\.ts$/)
    .filter(({ text }) => text.match(STATE) !== null)
    .map(({ path }) => path);
  expect(found.toSorted()).toEqual(Object.keys(SHARED).toSorted());
});
