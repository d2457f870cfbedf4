/**
 * The operator's key, with which the worker signs a session's commits. It is used by OpenSSH's and GnuPG's own programs, and is in no
 * sandbox. A signature must be the same each time: a push that is repeated must make the same commits.
 */
import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gitReason } from "./git-words.ts";
import { CredentialUnavailable, type RemoteTrouble } from "./trouble.ts";

/** The worker's variables, apart from where git runs. */
export interface SigningKey {
  /** A file; for GnuPG also a key's id in its own folder of keys. */
  readonly key: string;
  /** GnuPG's folder of keys. */
  readonly gnupgHome: string;
  readonly environment: Readonly<Record<string, string>>;
}

export type SigningKind = "ssh" | "gpg";

export interface Signer {
  /** The key, for people. */
  readonly about: string;
  /**
   * @param payload one byte a character
   * @param timeS when it is signed, in seconds of Unix time, where the signature tells. @throws CredentialUnavailable
   */
  readonly sign: (payload: string, timeS: number) => Promise<string>;
}

const VARIABLE = "LONGHAUL_GIT_SIGNING_KEY_FILE";
/** Chosen: a signature takes some milliseconds; a key in a card or an agent that asks a person never comes. */
const SIGN_MS = 15_000;
const PROBE = "Longhaul asks whether two signatures of this line are equal.\n";

/** @returns undefined if the variable is not set */
export function signingKeyIn(
  environment: Readonly<Record<string, string | undefined>>,
  passed: Readonly<Record<string, string>>,
): SigningKey | undefined {
  const key = environment["LONGHAUL_GIT_SIGNING_KEY_FILE"]?.trim() ?? "";
  if (key === "") return undefined;
  const gnupgHome = environment["GNUPGHOME"] || join(environment["HOME"] || "/nonexistent", ".gnupg");
  return { key, gnupgHome, environment: { ...passed, LC_ALL: "C.UTF-8", LANGUAGE: "" } };
}

/**
 * Signs with the key, once it is known that it can and that it does so the same way each time.
 * @throws CredentialUnavailable that says what is wrong with the key
 */
export async function withSigner<T>(
  key: SigningKey | undefined,
  kind: SigningKind,
  use: (signer: Signer) => Promise<T>,
): Promise<T> {
  if (key === undefined)
    throw unusable(
      `git.sign is ${kind}, and the worker has no key`,
      `Set ${VARIABLE} for the worker, or git.sign: none.`,
    );
  const keyKind = await kindOf(key);
  if (keyKind !== kind)
    throw unusable(`${key.key} is no key for git.sign: ${kind}`, `Set git.sign: ${keyKind}, or another key.`);
  return kind === "ssh" ? withSsh(key, use) : withGpg(key, use);
}

/**
 * Whether the worker can sign, found out by signing.
 * @param kind absent: what the key is for
 * @returns the key, for people, or what is wrong
 */
export async function trySigning(
  key: SigningKey | undefined,
  kind?: SigningKind,
): Promise<{ readonly about: string } | { readonly trouble: RemoteTrouble }> {
  try {
    const signingKind = kind ?? (key === undefined ? "ssh" : await kindOf(key));
    return await withSigner(key, signingKind, ({ about }) => Promise.resolve({ about }));
  } catch (error) {
    if (!(error instanceof CredentialUnavailable)) throw error;
    return { trouble: error.trouble };
  }
}

/** What a key's file is for. @throws CredentialUnavailable if it cannot be read, or others may */
async function kindOf({ key }: SigningKey): Promise<SigningKind> {
  let text: string;
  try {
    text = await readFile(key, "latin1");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A key of GnuPG's own folder.
    if (code === "ENOENT" && /^(0x)?[0-9a-f]{8,40}!?$|^<?[^/\s]+@[^/\s]+>?$/i.test(key)) return "gpg";
    throw unusable(`the key ${key} cannot be read (${code ?? "no file"})`, `Correct ${VARIABLE}.`);
  }
  if (/^(ssh-|ecdsa-|sk-)\S+ /.test(text)) return "ssh";
  const { mode, uid } = await stat(key);
  const isOpen = (mode & 0o007) !== 0 || ((mode & 0o070) !== 0 && uid === process.getuid?.());
  if (isOpen) throw unusable(`the key ${key} can be read by others`, `chmod 600 ${key}`);
  return /^-----BEGIN (?!PGP)[A-Z ]*PRIVATE KEY-----/.test(text) ? "ssh" : "gpg";
}

async function withSsh<T>(key: SigningKey, use: (signer: Signer) => Promise<T>): Promise<T> {
  const fingerprint = await ran("ssh-keygen", ["-l", "-f", key.key], key, "");
  if (fingerprint.code !== 0)
    throw unusable(
      `${key.key} is no key that ssh-keygen can read: ${gitReason(fingerprint.err)}`,
      `Correct ${VARIABLE}.`,
    );
  // Else ssh-keygen would ask for it.
  const isPublic = /^(ssh-|ecdsa-|sk-)/.test(await readFile(key.key, "latin1"));
  const opened = isPublic ? undefined : await ran("ssh-keygen", ["-y", "-P", "", "-f", key.key], key, "");
  if (opened !== undefined && opened.code !== 0)
    throw unusable(
      `the key ${key.key} cannot be used: ${gitReason(opened.err)}`,
      "If it has a passphrase, load it into an ssh-agent (SSH_AUTH_SOCK) and name its public key, or use a key without one.",
    );
  const sign = async (payload: string) => {
    const signed = await ran("ssh-keygen", ["-q", "-Y", "sign", "-n", "git", "-f", key.key], key, payload);
    if (signed.code === 0 && signed.out.startsWith("-----BEGIN SSH SIGNATURE-----")) return signed.out;
    const fix = isPublic
      ? "Load its private key into the agent of SSH_AUTH_SOCK."
      : "See its owner and rights.";
    throw unusable(`the key ${key.key} does not sign: ${gitReason(signed.err)}`, fix);
  };
  return use(await sameEachTime({ about: aboutKey(fingerprint.out), sign }, key, 0));
}

/** Such as `SHA256:… (ED25519)`, of the line `256 SHA256:… name (ED25519)`. */
const aboutKey = (line: string): string => line.trim().replace(/^\d+ (\S+).* (\([^)]*\))$/, "$1 $2");

async function withGpg<T>(key: SigningKey, use: (signer: Signer) => Promise<T>): Promise<T> {
  const isFile = await stat(key.key).then(
    () => true,
    () => false,
  );
  if (!isFile) return use(await gpgSigner(key, key.gnupgHome, key.key));
  // Short, since the agent's socket is in it.
  const home = await mkdtemp(join(tmpdir(), "lh-gpg-"));
  try {
    await chmod(home, 0o700);
    const imported = await ran(
      "gpg",
      ["--homedir", home, "--batch", "--no-tty", "--import", key.key],
      key,
      "",
    );
    if (imported.code !== 0)
      throw unusable(
        `${key.key} is no key that gpg can read: ${gitReason(imported.err)}`,
        `Correct ${VARIABLE}.`,
      );
    return await use(await gpgSigner(key, home, undefined));
  } finally {
    await ran("gpgconf", ["--homedir", home, "--kill", "gpg-agent"], key, "").catch(() => undefined);
    await rm(home, { recursive: true, force: true });
  }
}

/**
 * A signature of OpenPGP has a time in it: that of the commit, or of the key, where that is younger. GnuPG takes it from us, so that a
 * commit is signed the same way each time.
 * @param id of the key; undefined for the only one
 */
async function gpgSigner(key: SigningKey, home: string, id: string | undefined): Promise<Signer> {
  const common = ["--homedir", home, "--batch", "--no-tty", "--pinentry-mode", "error"];
  const listed = await ran(
    "gpg",
    [...common, "--with-colons", "--list-secret-keys", ...(id === undefined ? [] : ["--", id])],
    key,
    "",
  );
  const rows = listed.out.split("\n").map((line) => line.split(":"));
  const [fingerprint] = rows.flatMap((row) => (row[0] === "fpr" ? [row[9] ?? ""] : []));
  if (listed.code !== 0 || fingerprint === undefined)
    throw unusable(
      `gpg has no secret key ${id ?? `in ${key.key}`}${listed.err === "" ? "" : `: ${gitReason(listed.err)}`}`,
      "Name a key whose secret part is there (gpg --list-secret-keys).",
    );
  const youngestS = Math.max(
    ...rows.flatMap((row) => (/^(sec|ssb)$/.test(row[0] ?? "") ? [Number(row[5])] : [])),
  );
  // Under a mail address, it would be part of the signature.
  const user = id?.endsWith("!") === true ? id : fingerprint;
  const signed = async (payload: string, time: readonly string[]) => {
    const args = [...common, ...time, "--armor", "--detach-sign", "--local-user", user];
    const result = await ran("gpg", args, key, payload);
    if (result.code === 0 && result.out.startsWith("-----BEGIN PGP SIGNATURE-----")) return result.out;
    throw unusable(
      `the key ${id ?? key.key} does not sign: ${gitReason(result.err)}`,
      "It must not have expired, and be without a passphrase, or known to its gpg-agent.",
    );
  };
  // By the clock, once: an expired key would sign at an earlier time.
  await signed(PROBE, []);
  const sign = (payload: string, timeS: number) =>
    signed(payload, ["--faked-system-time", `${Math.max(timeS, youngestS)}!`]);
  return sameEachTime({ about: `${fingerprint} (GPG)`, sign }, key, youngestS);
}

/** @throws CredentialUnavailable for a key with another signature each time, such as one of ECDSA */
async function sameEachTime(signer: Signer, { key }: SigningKey, timeS: number): Promise<Signer> {
  if ((await signer.sign(PROBE, timeS)) === (await signer.sign(PROBE, timeS))) return signer;
  throw unusable(
    `the key ${key}, ${signer.about}, signs the same text in another way each time, so a push that is repeated would make other commits`,
    "Use an ed25519 key.",
  );
}

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** @throws CredentialUnavailable if the program is not there, or does not end */
function ran(
  program: string,
  args: readonly string[],
  { environment }: SigningKey,
  input: string,
): Promise<Ran> {
  const options = { env: { ...environment }, encoding: "latin1" as const, timeout: SIGN_MS, cwd: "/" };
  return new Promise((resolve, reject) => {
    const child = execFile(program, [...args], options, (error, out, err) => {
      if (error === null) resolve({ code: 0, out, err });
      else if (typeof error.code === "number") resolve({ code: error.code, out, err });
      else if ((error.code as unknown) === "ENOENT") reject(noProgram(program));
      else
        reject(
          unusable(
            `${program} did not end within ${SIGN_MS / 1_000} s`,
            "See whether it waits for a person: a card, an agent that asks.",
          ),
        );
    });
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(Buffer.from(input, "latin1"));
  });
}

const noProgram = (program: string) =>
  unusable(
    `${program} is not installed, which signs commits`,
    `apt-get install ${program === "ssh-keygen" ? "openssh-client" : "gnupg"}`,
  );

function unusable(message: string, fix: string): CredentialUnavailable {
  const trouble: RemoteTrouble = { kind: "credential", message: `Commits cannot be signed: ${message}`, fix };
  return new CredentialUnavailable(trouble);
}
