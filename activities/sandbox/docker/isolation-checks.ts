/** What the kernel says of the supervisor's own confinement, read inside the sandbox, against what it must be. Pure. */

/** Lines of `/proc/self/status` by their names. */
export type KernelStatus = Readonly<Record<string, string>>;

/** SETGID (6) and SETUID (7), which the supervisor has to become the tools' user. */
const BOUNDING_SET = 0xc0n;

/**
 * What is missing, one line each. An engine may be told to leave these walls out for all its containers, of which
 * inspecting one shows nothing.
 * @param runtime another than the engine's own, which may filter system calls outside of what the sandbox can see
 */
export function isolationGaps(status: KernelStatus, runtime: string | undefined): string[] {
  const gaps: string[] = [];
  const expect = (name: string, expected: string) => {
    if (status[name] !== expected)
      gaps.push(`${name} is ${status[name] ?? "not told"} instead of ${expected}`);
  };
  if (runtime === undefined) expect("Seccomp", "2");
  expect("NoNewPrivs", "1");
  const bounding = status["CapBnd"] ?? "";
  if (!/^[0-9a-f]+$/.test(bounding) || BigInt(`0x${bounding}`) !== BOUNDING_SET)
    gaps.push(`CapBnd is ${bounding || "not told"} instead of ${BOUNDING_SET.toString(16)}`);
  return gaps;
}
