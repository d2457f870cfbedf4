/** Reads environment variables: an empty one counts as not set. */

export type Environment = Readonly<Record<string, string | undefined>>;

export function setting(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim();
  return value === undefined || value === "" ? undefined : value;
}
