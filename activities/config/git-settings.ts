/** Git input and output: the settings, the accepted repository addresses, and the forge that an address is of. */
import { z } from "zod";
import { commitSettings } from "./commit-settings.ts";
import { followSchema } from "./follow-settings.ts";
import { sizeSchema } from "./setting-values.ts";

/** Branch names that `git check-ref-format` accepts. */
const BRANCH =
  /^(?!-)(?!@$)(?!.*(?:\/\.|\.\.|@\{|\/\/|\.lock(?:\/|$)|\/$|\.$))[^\p{Cc}\s~^:?*[\\./][^\p{Cc}\s~^:?*[\\]*$/u;

export const branchName = z
  .string()
  .max(200)
  .refine((name) => BRANCH.test(name.replaceAll("{id}", "id")), "a valid Git branch name");

/** A branch, tag or commit. */
export const refName = z
  .string()
  .max(200)
  .refine((name) => BRANCH.test(name), "a branch, tag or commit");

/** A host, with a port unless it is the usual one, and a path; or a folder. `*` is any name, a last `**` everything below. */
const REPOSITORY_PATTERN =
  /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)?(:\d{1,5})?(\/(?!\.\.?(?:\/|$))[^\p{Cc}\p{Cf}\s/%\\:;]+)+$/u;

export const repositoryPattern = z
  .string()
  .max(500)
  .regex(REPOSITORY_PATTERN, "a host and a path without a scheme, such as github.com/acme/*");

export const gitConfigSchema = z.strictObject({
  /** The branch that the session's work is pushed to; `{id}` is the session's id. */
  branch: branchName.default("longhaul/{id}"),
  /** `saves`: also during the session, at most once a minute. */
  push: z.enum(["never", "end", "saves"]).default("never"),
  pr: z.enum(["none", "draft", "ready"]).default("none"),
  ...commitSettings,
  /** What a pull request gets besides its text, when it is opened. */
  pullRequest: z
    .strictObject({
      /** Labels that the repository has; none is made. */
      labels: z.array(z.string().min(1).max(100)).max(50).default([]),
      /** Names on the forge, `owner` for the session's, or `@organisation/team`. */
      reviewers: z
        .array(
          z
            .string()
            .regex(/^(@[\w.-]+\/)?[\w.-]{1,100}$/, "a name on the forge, owner, or @organisation/team"),
        )
        .max(50)
        .default([]),
      /** Whether the session's owner is assigned. */
      assignOwner: z.boolean().default(false),
      /** Whether the issue whose address is in the task is closed by its merge, or only named. */
      closes: z.boolean().default(true),
      /** More changed lines are said in the text. Chosen: what is longer than that is rarely read in one go. */
      warnLines: z.number().int().positive().default(1_000),
    })
    .prefault({}),
  /** Number of commits of history in the sandbox; 0 means all. */
  depth: z.number().int().min(0).default(0),
  /** Whether Git LFS files are fetched and pushed with their content. */
  lfs: z.boolean().default(false),
  /** Whether submodules are checked out, of all levels. */
  submodules: z.boolean().default(false),
  /** Whether `branch` may be the remote's default branch. */
  allowDefaultBranch: z.boolean().default(false),
  /** Size limit of one push out of a sandbox. */
  maxBundle: sizeSchema.default("512m"),
  forge: z.enum(["auto", "github", "gitlab", "gitea", "forgejo"]).default("auto"),
  /** Repositories that a session's own one may name (submodules, a store for LFS) and for which the worker's credentials are used. */
  also: z.array(repositoryPattern).max(100).default([]),
  /** What happens to a pull request after it is open. */
  follow: followSchema.optional(),
});
export type GitConfig = z.infer<typeof gitConfigSchema>;

/** The settings stored with a session that works on a repository. */
export const sessionGitSchema = gitConfigSchema.extend({
  /** Contains no credentials. */
  url: z.string(),
  ref: z.string().optional(),
  /** The pull request that the session took over: what it pushes to `branch` goes into it, and no other one is opened. */
  pull: z.object({ url: z.string(), number: z.number().int().min(1) }).optional(),
});
export type SessionGit = z.infer<typeof sessionGitSchema>;

/** Whether anything is delivered without a person's further word. */
export const isDelivered = ({ push, pr }: Pick<GitConfig, "push" | "pr">): boolean =>
  push !== "never" || pr !== "none";

export const toBranchName = ({ branch }: Pick<GitConfig, "branch">, sessionId: string): string =>
  // The id of a scheduled session contains a time with colons, which Git allows in no name.
  branch.replaceAll("{id}", sessionId.replaceAll(":", ""));

export interface RepositoryAddress {
  readonly url: string;
  /** Undefined if the repository is on this machine's disk. */
  readonly host: string | undefined;
  readonly kind: "http" | "ssh" | "file";
}

const KINDS: Readonly<Record<string, RepositoryAddress["kind"] | undefined>> = {
  "https:": "http",
  "http:": "http",
  "ssh:": "ssh",
  "file:": "file",
};

/** Known beginnings of forges' tokens, and names as long and as mixed as one. */
const TOKEN = /^(gh[a-z]_|github_pat_|gl[a-z]+-|ATBB|ATCTT|token$)|^(?=.*\d)(?=.*[A-Za-z])[\w-]{20,}$/i;

/**
 * Scheme, user and server as every program reads them alike: a browser's rules, which we check by, end the server at a backslash,
 * accept a lacking slash and decode what is encoded; git's do not, and would ask another server.
 */
const PLAIN =
  /^(?:https?|ssh|file):\/\/(?:[^\\/@?#]*@)?(?:[\p{L}\p{N}._-]+|\[[\da-f:.]+\])?(?::\d+)?(?:\/[^\\]*)?$/iu;

/** The parsed address, or why it is not accepted. A user's name without a password is left out of it. */
export function repositoryAddress(text: string): RepositoryAddress | { readonly wrong: string } {
  const forms = "https://host/owner/name.git, ssh://git@host/name.git, git@host:name.git or file:///folder";
  if (text.length > 2_000 || /[\p{Cc}\p{Cf}\s]/u.test(text) || text.startsWith("-"))
    return { wrong: `The repository's address is not one of the form ${forms}.` };
  const short = /^[A-Za-z0-9_][\w.-]*@([A-Za-z0-9][A-Za-z0-9.-]*):(?!\/\/)[^-].*$/.exec(text);
  if (short !== null) return { url: text, host: short[1], kind: "ssh" };
  const url = URL.parse(text);
  const kind = KINDS[url?.protocol ?? ""];
  const isPlain = PLAIN.test(text) && (kind === "file" || !/^\w+:\/\/\//.test(text));
  if (url === null || kind === undefined || !isPlain || url.hostname.startsWith("-"))
    return { wrong: `A repository's address has the form ${forms}.` };
  // The forges' own copy buttons put a user's name in front, which is no secret and of no use. A token there is one.
  const isName = url.username !== "" && kind === "http" && !TOKEN.test(url.username);
  if (isName && url.password === "") return repositoryAddress(text.replace(/^(https?:\/\/)[^/@]*@/i, "$1"));
  if (url.password !== "" || (kind !== "ssh" && url.username !== "") || url.search !== "" || url.hash !== "")
    return {
      wrong: `The repository's address holds a credential or a query: leave it out, and set ${tokenVariable(url.hostname)}.`,
    };
  return { url: text, host: kind === "file" ? undefined : url.hostname, kind };
}

/** Names under which forges answer ssh on the port of HTTPS, for networks that let nothing else through. Source: their documentation. */
const OTHER_NAMES: Readonly<Record<string, string | undefined>> = {
  "ssh.github.com": "github.com",
  "altssh.gitlab.com": "gitlab.com",
  "altssh.bitbucket.org": "bitbucket.org",
  "ssh.dev.azure.com": "dev.azure.com",
};

/** The name by which a forge is known. */
export function usualHost(host: string): string {
  const name = host.toLowerCase().replace(/\.$/, "");
  return OTHER_NAMES[name] ?? name;
}

/** The worker's variable with the token for one host only. */
export const tokenVariable = (host: string): string =>
  `LONGHAUL_GIT_TOKEN_${usualHost(host)
    .replaceAll(/[^A-Za-z0-9]/g, "_")
    .toUpperCase()}`;

/** Which forge a repository is on, by its address and the setting `git.forge`. */
export interface ForgePlace {
  /** Forgejo's API is Gitea's. */
  readonly kind: "github" | "gitlab" | "gitea";
  readonly api: string;
  /** `owner/name`; GitLab's may have more parts. */
  readonly project: string;
}

/** @returns undefined if the address is of no known forge. */
export function parseForge(url: string, forge: GitConfig["forge"]): ForgePlace | undefined {
  const short = /^[^@/]+@([^:/]+):(.+)$/.exec(url);
  const parsed = short === null ? URL.parse(url) : null;
  const host = usualHost(short?.[1] ?? parsed?.hostname ?? "");
  const path = (short?.[2] ?? parsed?.pathname ?? "").replace(/^\/+|\/+$/g, "").replace(/\.git$/, "");
  if (host === "" || !path.includes("/")) return undefined;
  const kind = forge === "auto" ? guessed(host) : forge;
  if (kind === undefined) return undefined;
  const isWeb = parsed !== null && /^https?:$/.test(parsed.protocol);
  const origin = isWeb ? parsed.origin : `https://${host}`;
  if (kind === "gitlab") return { kind, api: `${origin}/api/v4`, project: path };
  if (kind === "gitea" || kind === "forgejo") return onGitea(origin, path);
  // GitHub's own API has a separate host; that of GitHub Enterprise is below the server's address.
  return { kind, api: host === "github.com" ? "https://api.github.com" : `${origin}/api/v3`, project: path };
}

/** A project has an owner and a name; what comes before them is where the server is below its host. */
function onGitea(origin: string, path: string): ForgePlace {
  const parts = path.split("/");
  const root = parts.slice(0, -2).map((part) => `/${part}`);
  return { kind: "gitea", api: `${origin}${root.join("")}/api/v1`, project: parts.slice(-2).join("/") };
}

function guessed(host: string): ForgePlace["kind"] | undefined {
  if (host === "github.com" || host.startsWith("github.")) return "github";
  if (host === "gitlab.com" || host.startsWith("gitlab.")) return "gitlab";
  return host === "codeberg.org" || /^(gitea|forgejo)\./.test(host) ? "gitea" : undefined;
}

/** Whether a forge may have it: its address has a server, an owner and a name. */
export const mayBeOnForge = (url: string): boolean => parseForge(url, "gitea") !== undefined;

/** Why a repository has no pull requests. */
export function noForge(url: string): string {
  const address = repositoryAddress(url);
  const isFolder = !("wrong" in address) && address.kind === "file";
  return `No pull request can be opened for ${url}: ${isFolder ? "it is a folder" : "it is not known which forge it is on"}.`;
}

/** The address of a pull request, as a person copies it; by its form, it says which kind of forge it is on. */
export interface PullRequestAddress {
  /** The repository that it goes into. */
  readonly repository: string;
  readonly number: number;
  /** Forgejo's addresses have Gitea's form. */
  readonly kind: ForgePlace["kind"];
  /** Without what the person looked at: files, commits, a comment. */
  readonly url: string;
  /** The reference with which its forge shows the newest commit, also of a fork's branch. */
  readonly ref: string;
}

/** Source: the forges' own pages. What follows the number is a part of the page. */
const FORMS: readonly {
  readonly kind: PullRequestAddress["kind"];
  readonly form: RegExp;
  readonly refs: string;
}[] = [
  { kind: "gitlab", form: /^(\/.+?\/[^/]+)\/-\/merge_requests\/(\d{1,15})(\/.*)?$/, refs: "merge-requests" },
  { kind: "github", form: /^(\/[^/]+\/[^/]+)\/pull\/(\d{1,15})(\/.*)?$/, refs: "pull" },
  { kind: "gitea", form: /^(\/.*?[^/]+\/[^/]+)\/pulls\/(\d{1,15})(\/.*)?$/, refs: "pull" },
];

const EXPECTED =
  "https://github.com/acme/app/pull/7, https://gitlab.com/acme/app/-/merge_requests/7 or https://codeberg.org/acme/app/pulls/7";

/** The parsed address, or why it is not accepted. */
export function pullRequestAddress(text: string): PullRequestAddress | { readonly wrong: string } {
  const wrong = `The address of a pull request has the form ${EXPECTED}, not ${JSON.stringify(text)}.`;
  const parsed = URL.parse(text.trim());
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return { wrong };
  for (const { kind, form, refs } of FORMS) {
    const [, path, digits] = form.exec(parsed.pathname) ?? [];
    const number = Number(digits);
    if (path === undefined || digits === undefined || number < 1) continue;
    // A password would be in the session's settings.
    const user = parsed.username === "" ? "" : `${parsed.username}${parsed.password && ":x"}@`;
    const address = repositoryAddress(`${parsed.protocol}//${user}${parsed.host}${path}.git`);
    if ("wrong" in address) return address;
    return {
      repository: address.url,
      number,
      kind,
      url: `${parsed.origin}${parsed.pathname.slice(0, parsed.pathname.indexOf(digits, path.length) + digits.length)}`,
      ref: `refs/${refs}/${number}/head`,
    };
  }
  return { wrong };
}
