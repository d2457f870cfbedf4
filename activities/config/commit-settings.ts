/** Whose a session's commits are, how they are signed, and what their messages must look like: settings of `git`. */
import { z } from "zod";

export interface GitIdentity {
  readonly name: string;
  readonly email: string;
}

/** Git strips blanks and these characters, and refuses to commit if nothing is left. Source: its `ident.c`. */
const NAMED = /[^\s\p{Cc}.,:;<>"\\']/u;
const OF_AGENT: GitIdentity = { name: "Longhaul", email: "longhaul@localhost" };

const identityFields = z.strictObject({
  name: z.string().max(100).regex(NAMED, "a name with a letter or digit").default(OF_AGENT.name),
  email: z.string().min(1).max(200).default(OF_AGENT.email),
});

const AS_TEXT = /^([^<>\p{Cc}]{1,100}?) *<([^<>\s\p{Cc}]{1,200})>$/u;

/** `Ann Example <ann@example.com>`, as Git writes it. */
const identityText = z
  .string()
  .refine(
    (text) => NAMED.test(AS_TEXT.exec(text)?.[1] ?? ""),
    "a name and an address, such as Ann <ann@example.com>",
  )
  .transform((text): GitIdentity => {
    const [, name = "", email = ""] = AS_TEXT.exec(text) ?? [];
    return { name, email };
  });

const identitySchema = z.union([identityFields, identityText]);

/** A sign-off is a person's own declaration. */
const TRAILER = /^(?!signed-off-by$)[A-Za-z][A-Za-z0-9-]{0,60}$/i;

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

/** Keys of `git`. */
export const commitSettings = {
  /** Who wrote the commits: the agent, the session's owner, or somebody by name. */
  author: z
    .union([z.literal("agent").transform(() => OF_AGENT), z.literal("owner"), identitySchema])
    .prefault({}),
  /** Who made them, as a forge compares it with the signature's key. Absent: the author, or the agent if that is the owner. */
  committer: identitySchema.optional(),
  /** Further authors, each as a line `Co-authored-by`. */
  coAuthor: z
    .array(z.enum(["owner", "agent"]))
    .max(2)
    .default([]),
  /** Lines at the end of each message; `{model}` is the session's model. */
  trailers: z
    .record(
      z.string().regex(TRAILER, "a name such as Assisted-by; Signed-off-by is a person's to write"),
      z.string().regex(/^[^\p{Cc}]{1,200}$/u, "one line of at most 200 characters"),
    )
    .default({}),
  /** Whether the worker signs the commits before it pushes them, with its own key. */
  sign: z.enum(["none", "ssh", "gpg"]).default("none"),
  /** What messages must look like: told to the model, and held to it at delivery if `onMismatch` is `refuse`. */
  message: z
    .strictObject({
      pattern: z.string().min(1).max(500).refine(isPattern, "a regular expression"),
      onMismatch: z.enum(["none", "refuse"]).default("none"),
    })
    .optional(),
};

const settingsSchema = z.strictObject(commitSettings);
type CommitSettings = z.infer<typeof settingsSchema>;
type Committing = Pick<CommitSettings, "author" | "committer">;

/** As whom the agent commits in its sandbox: by this address, the worker knows the session's own commits. */
export const agentIdentity = ({ author, committer }: Committing): GitIdentity =>
  committer ?? (author === "owner" ? OF_AGENT : author);

/** Whether commits are looked at, and perhaps written anew, before they are pushed. */
export function areFormed(git: CommitSettings): boolean {
  const { author, coAuthor, trailers, sign, message } = git;
  const isOther = author === "owner" || author.email !== agentIdentity(git).email;
  const hasLines = coAuthor.length > 0 || Object.keys(trailers).length > 0;
  return isOther || hasLines || sign !== "none" || message?.onMismatch === "refuse";
}

/** A person as the operator knows them: `people.<owner>` of the policy file. */
export const personSchema = z.strictObject({
  /** Name and address for commits. */
  author: identityText.optional(),
  /** Their name on the forge. */
  login: z
    .string()
    .regex(/^[\w][\w.-]{0,99}$/, "a name on a forge")
    .optional(),
});

export type Person = z.infer<typeof personSchema>;

/** The session's owner, as far as the operator says who that is. */
export const knownPerson = (
  policy: { readonly people?: Readonly<Record<string, Person>> | undefined } | undefined,
  owner: string | undefined,
): Person => (owner === undefined ? {} : (policy?.people?.[owner] ?? {}));

/** What the commits of a session look like. */
export interface CommitStyle {
  /** The agent, as it commits in the sandbox. */
  readonly agent: GitIdentity;
  /** Who takes the agent's place as the author. */
  readonly author: GitIdentity;
  /** Whole lines. */
  readonly trailers: readonly string[];
}

/**
 * @param model for `{model}`
 * @returns also what could not be had as it was asked for
 */
export function commitStyle(
  settings: Committing & Pick<CommitSettings, "coAuthor" | "trailers">,
  { owner, person, model }: CommitPerson,
): { readonly style: CommitStyle; readonly remarks: readonly string[] } {
  const agent = agentIdentity(settings);
  const known = person.author;
  const author = settings.author === "owner" ? (known ?? agent) : settings.author;
  const wantsOwner = settings.author === "owner" || settings.coAuthor.includes("owner");
  const others = settings.coAuthor
    .map((who) => (who === "agent" ? agent : known))
    .filter((one) => one !== undefined && one.email !== author.email);
  return {
    style: {
      agent,
      author,
      trailers: [
        ...Object.entries(settings.trailers).map(
          ([name, value]) => `${name}: ${value.replaceAll("{model}", () => model)}`,
        ),
        ...others.map((one) => `Co-authored-by: ${one?.name ?? ""} <${one?.email ?? ""}>`),
      ],
    },
    remarks: wantsOwner && known === undefined ? [unknownOwner(owner)] : [],
  };
}

interface CommitPerson {
  readonly owner: string | undefined;
  readonly person: Person;
  readonly model: string;
}

const unknownOwner = (owner: string | undefined): string =>
  owner === undefined
    ? "the commits do not name the session's owner: it has none (LONGHAUL_USER)"
    : `the commits do not name ${owner}: the worker's policy has no people.${owner}.author`;
