import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { type SigningKind, withSigner } from "../../../activities/git/signing-key.ts";
import { sessionGitSchema } from "../../../activities/config/git-settings.ts";
import { checkRepository, signingFinding } from "../../../client/setup/repository-check.ts";
import { makeRemote } from "../../support/remotes.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { gpgKeys, makeSshKey } from "../../support/signing-keys.ts";

const gpg = gpgKeys(afterAll);

const keyOf = (key: string, more: Readonly<Record<string, string>> = {}) =>
  createGitAccess({
    PATH: process.env["PATH"],
    GNUPGHOME: gpg.home,
    LONGHAUL_GIT_SIGNING_KEY_FILE: key,
    ...more,
  }).signing;

const signed = (kind: SigningKind, key: string, more?: Readonly<Record<string, string>>) =>
  withSigner(keyOf(key, more), kind, async ({ sign, about }) => ({
    about,
    text: await sign("tree 1\n\nHällo\0", 1_700_000_000),
  }));

describe("a key that signs commits", () => {
  it.each(["ed25519", "rsa"] as const)("signs the same way each time: ssh, %s", async (kind) => {
    const key = makeSshKey(kind);
    const first = await signed("ssh", key);
    expect(first.about).toContain(kind.toUpperCase());
    expect(first.text).toMatch(/^-----BEGIN SSH SIGNATURE-----\n/);
    expect(await signed("ssh", key)).toEqual(first);
  });

  it.each(["ed25519", "rsa2048", "nistp256"])("signs the same way each time: gpg, %s", async (kind) => {
    const id = gpg.make(`${kind}@example.org`, { kind });
    const first = await signed("gpg", id);
    expect(first.about).toContain(id);
    expect(first.text).toMatch(/^-----BEGIN PGP SIGNATURE-----\n/);
    expect(await signed("gpg", id)).toEqual(first);
    expect(await signed("gpg", `${kind}@example.org`)).toMatchObject({ text: first.text });
    // From a file, in a folder of keys of its own.
    expect(await signed("gpg", gpg.exported(id), { GNUPGHOME: "/nonexistent" })).toEqual(first);
  });

  it("may be in an agent: then its public key names it", async () => {
    const key = makeSshKey("ed25519", { passphrase: "secret" });
    const socket = join(emptyFolder(), "agent");
    const agent = spawn("ssh-agent", ["-D", "-a", socket], { stdio: ["ignore", "pipe", "ignore"] });
    onTestFinished(() => void agent.kill());
    await new Promise((resolve) => agent.stdout.once("data", resolve));
    const askpass = join(emptyFolder(), "askpass");
    writeFileSync(askpass, "#!/bin/sh\necho secret\n", { mode: 0o700 });
    execFileSync("ssh-add", ["-q", key], {
      env: {
        PATH: process.env["PATH"],
        SSH_AUTH_SOCK: socket,
        SSH_ASKPASS: askpass,
        SSH_ASKPASS_REQUIRE: "force",
      },
      stdio: "ignore",
    });
    const away = join(emptyFolder(), "key.pub");
    renameSync(`${key}.pub`, away);
    const first = await signed("ssh", away, { SSH_AUTH_SOCK: socket });
    expect(await signed("ssh", away, { SSH_AUTH_SOCK: socket })).toEqual(first);
    await expect(signed("ssh", away)).rejects.toMatchObject({
      trouble: { fix: expect.stringContaining("SSH_AUTH_SOCK") as string },
    });
  });

  it.each<[what: string, make: () => string, kind: SigningKind, why: RegExp]>([
    [
      "of ECDSA, with another signature each time",
      () => makeSshKey("ecdsa"),
      "ssh",
      /\(ECDSA\), signs the same text in another way each time/,
    ],
    [
      "with a passphrase",
      () => makeSshKey("ed25519", { passphrase: "secret" }),
      "ssh",
      /incorrect passphrase/,
    ],
    ["that others may read", () => opened(makeSshKey("ed25519")), "ssh", /can be read by others/],
    ["that is not there", () => "/nonexistent/key", "ssh", /cannot be read \(ENOENT\)/],
    ["that is none", () => written("hello"), "ssh", /is no key for git\.sign: ssh/],
    [
      "that is half of one",
      () => written("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n"),
      "ssh",
      /ssh-keygen can read/,
    ],
    ["of the other kind", () => makeSshKey("ed25519"), "gpg", /is no key for git\.sign: gpg/],
    [
      "of gpg in a file that others may read",
      () => opened(gpg.exported(gpg.make("open@example.org"))),
      "gpg",
      /can be read by others/,
    ],
    [
      "of gpg that is unknown",
      () => "nobody@example.org",
      "gpg",
      /gpg has no secret key nobody@example\.org/,
    ],
    ["of gpg that is none", () => written("hello"), "gpg", /no key that gpg can read/],
  ])("is refused before anything is signed: one %s", async (_what, make, kind, why) => {
    await expect(signed(kind, make())).rejects.toMatchObject({
      name: "CredentialUnavailable",
      message: expect.stringMatching(why) as string,
      isPassing: false,
    });
  });

  it("is refused if gpg would have to ask for its passphrase, or if it has expired", async () => {
    const locked = gpg.make("locked@example.org", { passphrase: "secret" });
    execFileSync("gpgconf", ["--kill", "gpg-agent"], { env: gpg.environment });
    await expect(signed("gpg", locked)).rejects.toThrow(/does not sign/);
    const expired = gpg.make("expired@example.org", { expires: "seconds=1" });
    await expect
      .poll(
        () =>
          signed("gpg", expired).then(
            () => "signed",
            (error: Error) => error.message,
          ),
        { timeout: 10_000 },
      )
      .toMatch(/expired/);
  });

  it("is refused with the package to install if its program is not there", async () => {
    const bin = emptyFolder();
    symlinkSync("/bin/true", join(bin, "git"));
    const key = makeSshKey("ed25519");
    await expect(signed("ssh", key, { PATH: bin })).rejects.toThrow(/apt-get install openssh-client/);
    await expect(signed("gpg", "a@example.org", { PATH: bin })).rejects.toThrow(/apt-get install gnupg/);
  });

  it("is asked for if there is none", async () => {
    await expect(withSigner(keyOf(""), "ssh", () => Promise.resolve())).rejects.toThrow(
      /LONGHAUL_GIT_SIGNING_KEY_FILE/,
    );
  });
});

function opened(key: string): string {
  chmodSync(key, 0o644);
  return key;
}

function written(text: string): string {
  const path = join(emptyFolder(), "key");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

describe("a session that is to be signed", () => {
  const check = (key: string, more: object = {}) =>
    checkRepository(
      sessionGitSchema.parse({ url: makeRemote().url, push: "end", sign: "ssh", ...more }),
      {},
      { PATH: process.env["PATH"], LONGHAUL_GIT_FOLDER: emptyFolder(), LONGHAUL_GIT_SIGNING_KEY_FILE: key },
    );

  it("is not started with a key that does not do, with code 4 and what to do (C4)", async () => {
    await expect(check(makeSshKey("ecdsa"))).rejects.toMatchObject({
      exitCode: 4,
      message: expect.stringMatching(/signs the same text in another way.*Nothing was started/) as string,
      fix: "Use an ed25519 key.",
    });
    await expect(check("")).rejects.toMatchObject({ exitCode: 4 });
    await check(makeSshKey("ed25519"));
    // Nothing is pushed, so nothing is signed.
    await check("", { push: "never" });
  });

  it("is what doctor looks at, if there is a key", async () => {
    const finding = (key: string) =>
      signingFinding({ PATH: process.env["PATH"], LONGHAUL_GIT_SIGNING_KEY_FILE: key });
    expect(await finding("")).toBeUndefined();
    expect(await finding(makeSshKey("ed25519"))).toMatchObject({
      ok: true,
      found: expect.stringContaining("ED25519") as string,
    });
    expect(await finding(makeSshKey("ecdsa"))).toMatchObject({ ok: false, fix: "Use an ed25519 key." });
  });
});
