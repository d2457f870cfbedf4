/** This product's version. */
import { readFileSync } from "node:fs";

export function productVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
