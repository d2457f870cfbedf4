/** Names of people, as settings and programs give them. */
import { personName } from "../../activities/text/clean.ts";
import { usageError } from "../console/errors.ts";

/** @throws ClientError (usage) for a name that would be changed or dropped: its person would act as somebody else */
export function checkedName(name: string, what: string): string {
  if (personName(name) === name) return name;
  throw usageError(
    `${what} is not a name that can be shown.`,
    "Expected one line of at most 100 characters, with single spaces and no control characters, such as alice.",
  );
}

/** Shorter tokens can be guessed. */
const MIN_TOKEN_CHARS = 16;

/**
 * Names by their tokens, from `alice=TOKEN,bob=TOKEN`.
 * @throws ClientError (usage) for an invalid list; its values are not repeated
 */
export function namesByToken(list: string): ReadonlyMap<string, string> {
  const users = new Map<string, string>();
  for (const pair of list.split(",").filter((one) => one.trim())) {
    const [, name = "", token = ""] = /^\s*([^=]+)=(\S+)\s*$/.exec(pair) ?? [];
    const user = name.trim();
    // A token of two people would make one of them the other.
    if (personName(user) !== user || token.length < MIN_TOKEN_CHARS || users.has(token))
      throw usageError(
        "LONGHAUL_SERVE_TOKENS is not a list of names and tokens.",
        `Write it as alice=TOKEN,bob=TOKEN, with at least ${MIN_TOKEN_CHARS} characters in each token, and no token twice.`,
      );
    users.set(token, user);
  }
  return users;
}
