/** Whether the runtime that starts sandboxes has the fixes for known container escapes. */
import type Dockerode from "dockerode";

/** The engine's runc, as the engine reports it. */
export interface Runc {
  /** With the distribution's own version if the engine reports it: `1.1.5+ds1 (1.1.5+ds1-1+deb12u1)`. */
  readonly version: string;
  /** CVEs of known container escapes whose fix this version is not known to have. */
  readonly open: readonly string[];
}

interface Escape {
  readonly names: readonly string[];
  /** The first release of each series with the fix; every later series has it. */
  readonly fixed: readonly string[];
  /** Distributions' packages that have the fix at an older version. */
  readonly backports: readonly RegExp[];
}

/**
 * Sources: runc's own advisories GHSA-xr7r-f8xq-vfvv (2024) and GHSA-9493-h29p-rfm2, -qw9x-cqr3-wc7r, -cgrx-mc8f-2prm (2025);
 * the changelog of Debian's package, whose newest version for bookworm has only the fix of 2024 (looked up 2026-11-23).
 */
const ESCAPES: readonly Escape[] = [
  {
    names: ["CVE-2024-21626"],
    fixed: ["1.1.12", "1.2.0"],
    backports: [/^1\.1\.5\+ds1-1\+deb12u[1-9]/],
  },
  {
    names: ["CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"],
    fixed: ["1.2.8", "1.3.3", "1.4.0-rc.3"],
    backports: [],
  },
];

/** @returns undefined if the engine reports no runc. @throws Error if it does not answer */
export async function runcOf(docker: Dockerode): Promise<Runc | undefined> {
  const { Components: parts = [] } = (await docker.version()) as {
    Components?: readonly {
      readonly Name: string;
      readonly Version: string;
      readonly Details?: { readonly GitCommit?: string };
    }[];
  };
  const runc = parts.find(({ Name: name }) => name === "runc");
  return runc && judgeRunc(runc.Version, runc.Details?.GitCommit);
}

/** @param packaged the commit that the engine reports, which Debian replaces by its package's version */
export function judgeRunc(version: string, packaged = ""): Runc {
  const isPackage = packaged.startsWith(version) && packaged !== version;
  const open = ESCAPES.filter(
    ({ fixed, backports }) =>
      !hasFix(version, fixed) &&
      !backports.some((backport) => backport.test(packaged) || backport.test(version)),
  );
  return {
    version: isPackage ? `${version} (${packaged})` : version,
    open: open.flatMap(({ names }) => names),
  };
}

function hasFix(version: string, fixed: readonly string[]): boolean {
  const numbers = numbersOf(version);
  if (numbers === undefined) return false;
  const releases = fixed.map(numbersOf).filter((release) => release !== undefined);
  const series = releases.find(([major, minor]) => major === numbers[0] && minor === numbers[1]);
  const last = releases.at(-1) ?? numbers;
  return series === undefined ? compare(numbers, last) > 0 : compare(numbers, series) >= 0;
}

/** Major, minor, patch and release candidate: a release sorts after all its candidates. */
function numbersOf(version: string): number[] | undefined {
  const match = /^v?(\d+)\.(\d+)\.(\d+)(?:[-~]rc\.?(\d+))?/.exec(version);
  return match?.slice(1).map((digits: string | undefined) => Number(digits ?? Infinity));
}

function compare(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((number, index) => number !== other[index]);
  return at === -1 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
}
