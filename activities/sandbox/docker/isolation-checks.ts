/** Compares the supervisor's confinement, as the kernel reports it inside the sandbox, with what it must be. Pure. */

/** Fields of `/proc/self/status` by name. */
export type KernelStatus = Readonly<Record<string, string>>;

/** SETGID (6) and SETUID (7), which the supervisor needs to become the tools' user. */
const BOUNDING_SET = 0xc0n;

/**
 * What is missing, one line each. An engine can be configured to leave these restrictions out for all its containers, which
 * inspecting a container does not show.
 * @param runtime a runtime other than the engine's default, which may filter system calls invisibly to the sandbox
 */
export function isolationGaps(status: KernelStatus, runtime: string | undefined): string[] {
  const gaps: string[] = [];
  const expect = (name: string, expected: string) => {
    if (status[name] !== expected)
      gaps.push(`${name} is ${status[name] ?? "unknown"} instead of ${expected}`);
  };
  if (runtime === undefined) expect("Seccomp", "2");
  expect("NoNewPrivs", "1");
  const bounding = status["CapBnd"] ?? "";
  if (!/^[0-9a-f]+$/.test(bounding) || BigInt(`0x${bounding}`) !== BOUNDING_SET)
    gaps.push(`CapBnd is ${bounding || "unknown"} instead of ${BOUNDING_SET.toString(16)}`);
  return gaps;
}
