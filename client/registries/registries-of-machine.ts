/** The package registries and certificate authorities of this machine. */
import { readBoundedText } from "../console/read-bounded-text.ts";
import { extraCertificates } from "./certificates.ts";
import { findRegistries, type FoundRegistries } from "./find-registries.ts";
import type { Environment } from "../../activities/config/providers.ts";

export interface MachineRegistries extends FoundRegistries {
  /** PEM; undefined if the machine trusts the public authorities only. */
  readonly certificates: string | undefined;
}

/** Debian's home folder for users without one, which does not exist. */
const NO_HOME = "/nonexistent";

export function registriesOfMachine(environment: Environment): MachineRegistries {
  const found = findRegistries({ environment, home: environment["HOME"] || NO_HOME, read });
  return { ...found, certificates: extraCertificates(environment) };
}

function read(path: string): string | undefined {
  try {
    return readBoundedText(path);
  } catch {
    return undefined;
  }
}
