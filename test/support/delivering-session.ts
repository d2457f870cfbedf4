/** A session's commits as they are delivered: real git, OpenSSH and GnuPG, a sandbox that is a folder, and a remote on disk. */
import { execFileSync } from "node:child_process";
import { onTestFinished } from "vitest";
import { gitConfigSchema, type SessionGit } from "../../activities/config/git-settings.ts";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { updateMirror } from "../../activities/git/mirror.ts";
import { pushCommit } from "../../activities/git/push.ts";
import { openRelay, receive } from "../../activities/git/relay.ts";
import type { Person } from "../../activities/config/commit-settings.ts";
import { formCommits, handBack } from "../../activities/session/form-commits.ts";
import { emptyFolder } from "./empty-folder.ts";
import { createFakeSandbox } from "./fake-sandbox.ts";
import { gitIn, makeRemote, type Remote } from "./remotes.ts";

export const BRANCH = "longhaul/a";
export const BOT = { name: "Acme Bot", email: "bot@acme.example" };
export interface Settings extends Partial<Omit<SessionGit, "author">> {
  readonly author?: SessionGit["author"];
  readonly key?: string;
  readonly gnupgHome?: string;
  readonly person?: Person;
}

/** A session's checkout of a remote's main, and its deliveries. */
export async function deliveringSession({
  remote = makeRemote(),
  ...first
}: Settings & { readonly remote?: Remote } = {}) {
  const sandbox = await createFakeSandbox();
  onTestFinished(() => sandbox.dispose());
  const sh = (script: string, env: Readonly<Record<string, string>> = {}) =>
    execFileSync("bash", ["-ec", script], {
      cwd: sandbox.root,
      encoding: "utf8",
      env: {
        PATH: process.env["PATH"],
        HOME: sandbox.root,
        GIT_CONFIG_NOSYSTEM: "1",
        GIT_CONFIG_GLOBAL: "/dev/null",
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  sh(
    `git clone -q ${remote.folder} .; git checkout -q -b ${BRANCH}; git config user.name '${BOT.name}'; git config user.email ${BOT.email}`,
  );
  const baseCommit = sh("git rev-parse HEAD");
  const work = (name: string, message = `Add ${name}`) => {
    sh(`echo ${name} > ${name}; git add -A; git commit -q -m "$MESSAGE"`, { MESSAGE: message });
    return sh("git rev-parse HEAD");
  };
  const pushes: { commit: string; status: string }[] = [];
  const git = (settings: Settings): SessionGit => {
    const { key: _key, person: _person, gnupgHome: _home, ...more } = { ...first, ...settings };
    return { ...gitConfigSchema.parse({ author: BOT, push: "end" }), url: remote.url, ...more };
  };
  const deliver = async (
    settings: Settings & { readonly atReceived?: () => void; readonly folder?: string } = {},
  ) => {
    const { atReceived, folder = worker, ...asked } = settings;
    const { key, person, gnupgHome = "" } = { ...first, ...asked };
    const access = createGitAccess({
      PATH: process.env["PATH"],
      LONGHAUL_GIT_FOLDER: folder,
      ...(key === undefined ? {} : { LONGHAUL_GIT_SIGNING_KEY_FILE: key, GNUPGHOME: gnupgHome }),
    });
    const { signal } = new AbortController();
    const head = sh("git rev-parse HEAD");
    const mirror = await updateMirror(access, remote.url);
    const relay = await openRelay(access, "a", mirror, head);
    const received = await receive(relay, sandbox, {
      head,
      ref: "HEAD",
      base: baseCommit,
      maxBytes: 2 ** 28,
      signal,
    });
    if ("refused" in received) return received;
    atReceived?.();
    const formed = await formCommits(
      {
        deps: { git: access, policy: person && ({ people: { ann: person } } as never) },
        session: { owner: "ann", config: { model: "openai/test" } },
        git: git(asked),
        repository: { baseCommit },
        branch: BRANCH,
      },
      { relay, mirror, commit: received.commit, pushes },
    );
    if ("refused" in formed) return formed;
    const { commit } = formed;
    const delivered = pushes.map((push) => push.commit);
    const push = {
      url: remote.url,
      branch: BRANCH,
      commit,
      allowDefaultBranch: false,
      abandoned: [],
      delivered,
      signal,
    };
    const pushed = await pushCommit(relay, push);
    if ("refused" in pushed) return pushed;
    if (!delivered.includes(commit)) pushes.unshift({ commit, status: "done" });
    await handBack(sandbox, relay, { ref: "HEAD", head, formed });
    return { ...formed, ...pushed };
  };
  const worker = emptyFolder();
  const shown = (format: string, commit = BRANCH) =>
    gitIn(remote.folder, "log", "-1", `--format=${format}`, commit);
  return { remote, sandbox, sh, work, deliver, pushes, shown, baseCommit };
}
