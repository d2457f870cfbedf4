/** Debian's (or Ubuntu's) packages: installed with only the variables that a download needs, and where this machine gets them. */
import { childEnvironment, run } from "./processes.ts";
import { type Say, slowly } from "./progress.ts";

export const MAX_LOG_BYTES = 64 * 1024 * 1024;
const TIMEOUT_MS = 15 * 60_000;

/** First announces what it installs and why. @throws Error with apt-get's output in `stderr` */
export async function aptInstall(say: Say, what: string, packages: readonly string[]): Promise<void> {
  const env = { ...childEnvironment("installer"), DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...args: string[]) =>
    run("apt-get", ["-q", "-y", ...args], { env, maxBuffer: MAX_LOG_BYTES, timeout: TIMEOUT_MS });
  await slowly(say, what, async () => {
    await apt("update");
    // Recommended packages would bring in a whole desktop.
    await apt("install", "--no-install-recommends", ...packages);
  });
}

export interface AptSource {
  readonly address: string;
  /** Release, such as `bookworm`. */
  readonly suite: string;
  readonly components: readonly string[];
  /** File with the keys that sign it. */
  readonly keyring?: string;
}

/** The first source of `codename` itself (not its updates) in the texts of apt's source files. */
export function findAptSource(texts: readonly string[], codename: string): AptSource | undefined {
  return texts
    .flatMap((text) => (/^Types:/m.test(text) ? parseStanzas(text) : parseLines(text)))
    .find((source) => source.suite === codename && /^https?:\/\//.test(source.address));
}

/** `deb [signed-by=…] ADDRESS SUITE COMPONENT…` */
function parseLines(text: string): AptSource[] {
  return text.split("\n").flatMap((line) => {
    const entry =
      /^\s*deb\s+(?:\[(?<options>[^\]]*)\]\s+)?(?<address>\S+)\s+(?<suite>\S+)\s+(?<rest>[^#]+)/.exec(line);
    if (entry?.groups === undefined) return [];
    const { options = "", address = "", suite = "", rest = "" } = entry.groups;
    const keyring = /signed-by=(\S+)/.exec(options)?.[1];
    return [{ address, suite, components: splitWords(rest), keyring }];
  });
}

/** Paragraphs of `Field: value`; a line that begins with a space continues the previous field. */
function parseStanzas(text: string): AptSource[] {
  const plain = text.replaceAll(/^#.*\n?/gm, "").replaceAll(/\n[ \t]+/g, " ");
  return plain.split(/\n\s*\n/).flatMap((stanza) => {
    const field = (name: string): string[] =>
      splitWords(new RegExp(`^${name}:(.*)$`, "im").exec(stanza)?.[1] ?? "");
    const [address] = field("URIs");
    const [keyring] = field("Signed-By");
    if (address === undefined || !field("Types").includes("deb") || field("Enabled")[0] === "no") return [];
    const known = keyring?.startsWith("/") === true ? { keyring } : {};
    return field("Suites").map((suite) => ({ address, suite, components: field("Components"), ...known }));
  });
}

const splitWords = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");
