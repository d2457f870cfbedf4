/** Reads environment variables: an empty one counts as not set. */
import type { Environment } from "../../activities/config/providers.ts";

export function setting(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === undefined || value === "" ? undefined : value;
}
