/** What a container's profile is compared by, for sandboxes and their services. */
import type { ContainerInspectInfo, Ulimit } from "dockerode";
import { cutChars } from "../../text/cut.ts";

const MAX_SHOWN_CHARS = 200;

/** By aspect of the profile, in the order in which differences are listed. */
export type Wanted = Record<string, readonly [actual: unknown, expected: unknown]>;

/** One line for each aspect that differs. */
export const wantedDifferences = (aspects: Wanted): string[] =>
  Object.entries(aspects)
    .filter(([, [actual, expected]]) => JSON.stringify(actual) !== JSON.stringify(expected))
    .map(([what, [actual, expected]]) => `${what}: ${brief(actual)} instead of ${brief(expected)}`);

/** Cut, since an environment may be long. */
const brief = (value: unknown): string => cutChars(JSON.stringify(value) ?? "missing", MAX_SHOWN_CHARS);

/** With its keys in order: engines differ in that. Empty for anything else. */
export const sortedRecord = (value: unknown): object =>
  typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)))
    : {};

/** Newer engines write CAP_SETUID for SETUID. */
export const upperNames = (names: readonly string[] | null | undefined): string[] =>
  (names ?? []).map((name) => name.toUpperCase().replace(/^CAP_/, "")).sort();

export const limitTexts = (ulimits: Ulimit[] | null | undefined): string[] =>
  (ulimits ?? []).map((ulimit) => `${ulimit.Name}=${ulimit.Soft}:${ulimit.Hard}`).sort();

export function namedPaths(host: object, name: "MaskedPaths" | "ReadonlyPaths"): readonly unknown[] {
  const paths: unknown = Object.entries(host).find(([key]) => key === name)?.[1];
  return Array.isArray(paths) ? paths : [];
}

/** A volume without a name of ours, for what the image declares. @param volumes those folders */
export const isAnonymousVolume = (
  mount: ContainerInspectInfo["Mounts"][number],
  volumes: readonly string[],
): boolean =>
  volumes.includes(mount.Destination) && mount.Type === "volume" && /^[0-9a-f]{64}$/.test(mount.Name ?? "");
