import { readFileSync } from "node:fs";

/** The text of a file in test/fixtures. */
export const fixtureText = (path: string): string =>
  readFileSync(new URL(`../fixtures/${path}`, import.meta.url), "utf8");
