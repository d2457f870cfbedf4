/** The addresses of a machine's interfaces, as its kernel lists them. Pure. */

/**
 * @param text `/proc/net/fib_trie` and `/proc/net/if_inet6`, one after the other
 * @returns each once, without loopback
 */
export function parseHostAddresses(text: string): string[] {
  const found = new Set<string>();
  let candidate = "";
  for (const line of text.split("\n")) {
    candidate = /^\s*\|--\s+([\d.]+)\s*$/.exec(line)?.[1] ?? candidate;
    if (/^\s*\/32 host LOCAL\b/.test(line) && !candidate.startsWith("127.")) found.add(candidate);
    const six = /^([0-9a-f]{32})\s.*\s(\S+)$/.exec(line);
    if (six?.[1] !== undefined && six[2] !== "lo") found.add(six[1].replaceAll(/.{4}(?!$)/g, "$&:"));
  }
  return [...found];
}
