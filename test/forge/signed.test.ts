import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { startAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import type { GiteaServer } from "../support/gitea/server.ts";
import { describeOnGitea } from "../support/gitea/use-gitea.ts";
import { onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { gpgKeys, makeSshKey } from "../support/signing-keys.ts";

interface ShownCommit {
  readonly sha: string;
  readonly commit: {
    readonly message: string;
    readonly author: { readonly name: string };
    readonly verification: { readonly verified: boolean; readonly reason: string };
  };
}

const gpg = gpgKeys(afterAll);

async function addSshKey(server: GiteaServer, key: string): Promise<void> {
  await server.made("bot", "POST", "/user/keys", { title: "sign", key: readFileSync(`${key}.pub`, "utf8") });
  server.verifySshKeys();
}

/** Gitea takes a key as theirs if it names an address of theirs. */
async function addGpgKey(server: GiteaServer): Promise<void> {
  const options = { env: gpg.environment, encoding: "utf8" } as const;
  const armored_public_key = execFileSync("gpg", ["--armor", "--export", "bot@example.org"], options);
  await server.made("bot", "POST", "/user/gpg_keys", { armored_public_key });
}

describeOnGitea("commits on a real Gitea", (gitea) => {
  it.each(["ssh", "gpg"] as const)(
    "are shown as verified, and the sandbox goes on from them: %s",
    async (sign) => {
      const server = gitea();
      const token = server.tokens.bot;
      const key = sign === "ssh" ? makeSshKey("ed25519") : gpg.exported(gpg.make("bot@example.org"));
      await (sign === "ssh" ? addSshKey(server, key) : addGpgKey(server));
      const repository = await server.makeRepository(`signed-${sign}`);
      const git = createGitAccess({
        PATH: process.env["PATH"],
        LONGHAUL_GIT_TOKEN: token,
        LONGHAUL_GIT_FOLDER: emptyFolder(),
        LONGHAUL_GIT_SIGNING_KEY_FILE: key,
      });
      const agent = await startAgent({ git, sanitizer: createSanitizer([token]) });
      try {
        const script = scriptedModel()
          .calls("bash", { command: "echo 1 > one; git add -A; git commit -qm One" })
          .calls("bash", { command: "echo 2 > two; git add -A; git commit -qm Two; git log --format=%G?" })
          .calls("bash", { command: "env; cat .git/config; ls ~/.ssh ~/.gnupg" })
          .says("Both are there.");
        const config = onRepository(`${server.url}/owner/signed-${sign}.git`, {
          push: "saves",
          pr: "draft",
          sign,
          committer: { name: "bot", email: "bot@example.org" },
          trailers: { "Assisted-by": "Longhaul:{model}" },
        });
        const verify = verifySchema.parse({ commands: ["test -f two"] });
        const session = await agent.start(script, { task: "Add both", config: { ...config, verify } });
        expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
        const branch = `longhaul/${session.id}`;
        const list = await server.made<ShownCommit[]>(
          "dev",
          "GET",
          `${repository}/commits?sha=${branch}&limit=2`,
        );
        expect(list.map(({ commit }) => commit.verification)).toMatchObject([
          { verified: true },
          { verified: true },
        ]);
        expect(list[0]?.commit.message).toMatch(/^Two\n\nAssisted-by: Longhaul:/);
        const pushed = (await session.dataOf("git:pushed")) as readonly { readonly commit: string }[];
        expect(pushed.at(-1)).toMatchObject({ commit: list[0]?.sha });
        // What was verified has another name on the forge than in the sandbox; the files are the same.
        const pull = await server.made<{ readonly body: string }>("dev", "GET", `${repository}/pulls/1`);
        expect(pull.body).toContain(`Verified at ${list[0]?.sha}:`);
        const seen = JSON.stringify([session.model.requests, await session.events()]);
        const [secret = ""] = readFileSync(key, "utf8")
          .split("\n")
          .filter((line) => line.length > 60);
        expect(secret).not.toBe("");
        expect(seen.includes(secret)).toBe(false);
        expect(seen.includes(key)).toBe(false);
        await checkSession(agent, session);
      } finally {
        await agent.close();
      }
    },
  );
});
