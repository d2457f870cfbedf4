/**
 * Keys that a sandbox can use and not read: secrets that the operator binds to hosts. A session only names them. Their values are
 * variables of the worker, `LONGHAUL_KEY_<NAME>`.
 */
import { z } from "zod";
import { domainProblem } from "./egress-domains.ts";
import { issueTexts } from "./issue-text.ts";

/** Part of a variable's name, and of what the sandbox has in place of the value. */
const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const MAX_NAME_CHARS = 40;
/** Of a key, as a policy defines it and a session names it. */
export const keyNameSchema = z
  .string()
  .max(MAX_NAME_CHARS)
  .regex(NAME, "the name of a key, in lower case such as npm or staging-api");

const PORT = /^(.+):([1-9]\d{0,4})$/;
/** An exact name with a public form; a port only if it is not 443. */
const hostSchema = z.string().superRefine((text, context) => {
  const [, name = text, port = "443"] = PORT.exec(text) ?? [];
  const wrong = /[*:]/.test(name) || /^\d+(\.\d+){3}$/.test(name) || domainProblem(name) !== undefined;
  const message =
    "an exact host name such as npm.example.com, with :PORT only if it is not 443; no address, no *";
  if (wrong || name.startsWith("group:") || Number(port) > 65_535)
    context.addIssue({ code: "custom", message });
});
const user = z
  .string()
  .regex(/^[!-9;-~]+$/, "a user's name without blanks and colons")
  .optional();
const path = z
  .string()
  .regex(/^\/[\w.~@/-]*$/, "a path such as /repository/npm/")
  .transform((text) => text.replace(/\/*$/, "/"));
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

const registry = { host: hostSchema, path: path.default("/"), user };
const registrySchema = z.discriminatedUnion("registry", [
  z.strictObject({
    registry: z.literal("npm"),
    ...registry,
    /** Only packages of this scope come from it; without one, all do. */
    scope: z
      .string()
      .regex(/^@[a-z0-9~-][a-z0-9._~-]*$/, "a scope such as @acme")
      .optional(),
  }),
  z.strictObject({ registry: z.literal("pip"), ...registry, path: path.default("/simple/") }),
  z.strictObject({
    registry: z.literal("cargo"),
    ...registry,
    /** The registry's name in Cargo.toml. */
    name: z.string().regex(/^[A-Za-z][\w-]*$/, "the registry's name in Cargo.toml"),
  }),
  z.strictObject({
    registry: z.literal("go"),
    ...registry,
    /** Modules that no public checksum database knows, as in GONOSUMDB. */
    modules: z
      .array(z.string().regex(/^[\w.*?/~-]+$/, "a pattern of modules such as acme.com/*"))
      .default([]),
  }),
  z.strictObject({
    registry: z.literal("maven"),
    ...registry,
    /** Which repositories it stands for. */
    mirrorOf: z
      .string()
      .regex(/^[\w*!:,.-]+$/, "as in Maven's settings, such as * or central")
      .default("*"),
  }),
]);

const gitSchema = z.strictObject({
  /** A forge: cloning and fetching over https. */
  git: hostSchema,
  repositories: z
    .array(z.string().regex(/^[\w.*~-]+(\/[\w.*~-]+)+$/, "a repository such as acme/app or acme/*"))
    .min(1),
  user: user.default("x-access-token"),
});

const hostKeySchema = z.strictObject({
  host: hostSchema,
  /** `{}` is the value. */
  header: z
    .string()
    .regex(/^[^:\s]+: [ -~]*$/, "a header such as Authorization: Bearer {}")
    .refine((text) => TOKEN.test(text.split(":")[0] ?? ""), "the name of a header before the colon")
    .refine((text) => text.split("{}").length === 2, "{} once, in place of the value"),
  methods: z.array(z.string().regex(/^[A-Z]+$/, "a method such as GET")).min(1),
  /** `*`: any part of one name; `**`: anything. */
  paths: z.array(z.string().regex(/^\/[!-~]*$/, "a path such as /v1/**")).min(1),
});

const keySchema = z.union([registrySchema, gitSchema, hostKeySchema], {
  error: (issue) => ofKind(issue.input) ?? KINDS,
});

const KINDS =
  "either `registry` (npm, pip, cargo, go or maven) with `host`, or `git` with `repositories`, or `host` with `header`, `methods` and `paths`";

/** What is wrong with the kind of key that was meant. */
function ofKind(input: unknown): string | undefined {
  if (typeof input !== "object" || input === null) return undefined;
  const otherwise = "git" in input ? gitSchema : hostKeySchema;
  const meant = "registry" in input ? registrySchema : otherwise;
  const { error } = meant.safeParse(input);
  return error && issueTexts(error, meant)[0];
}

/** `keys` of the policy, by name. */
export const keysSchema = z.record(keyNameSchema, keySchema);
export type KeyDefinition = z.infer<typeof keySchema>;
export type KeyDefinitions = z.infer<typeof keysSchema>;

/** What the proxy needs to know of a key, besides its value. */
export interface KeyRule {
  readonly host: string;
  readonly port: number;
  readonly header: string;
  /** The header's text. @param value the key's */
  readonly textOf: (value: string) => string;
  readonly uses: readonly KeyUse[];
}

/** Requests that get the key. */
interface KeyUse {
  readonly methods: readonly string[];
  readonly path: string;
  /** The whole query, if it matters. */
  readonly query?: string;
}

/** Host and port of a key. */
export function placeOfKey(key: KeyDefinition): { readonly host: string; readonly port: number } {
  const text = "git" in key ? key.git : key.host;
  const [, host = text, port = "443"] = PORT.exec(text) ?? [];
  return { host: host.toLowerCase().replace(/\.$/, ""), port: Number(port) };
}

/** What a key is good for. */
export function keyRule(key: KeyDefinition): KeyRule {
  const target = placeOfKey(key);
  if ("git" in key) return { ...target, ...inHeader(key), uses: key.repositories.flatMap(fetching) };
  if ("registry" in key) {
    // Files of an index are beside it.
    const below = key.registry === "pip" ? key.path.replace(/simple\/$/, "") : key.path;
    return { ...target, ...inHeader(key), uses: [{ methods: ["GET", "HEAD"], path: `${below}**` }] };
  }
  const [name = "", text = ""] = key.header.split(/: (.*)/);
  const uses = key.paths.map((pattern) => ({ methods: key.methods, path: pattern }));
  return { ...target, header: name, textOf: (value) => text.replace("{}", () => value), uses };
}

/** How a repository is cloned and fetched, and how Go asks where a module is; not how one pushes to it. */
function fetching(repository: string): KeyUse[] {
  return [repository, `${repository}.git`].flatMap((name) => [
    { methods: ["GET"], path: `/${name}/info/refs`, query: "service=git-upload-pack" },
    { methods: ["POST"], path: `/${name}/git-upload-pack` },
    { methods: ["GET"], path: `/${name}`, query: "go-get=1" },
  ]);
}

function inHeader(key: { readonly user?: string | undefined; readonly registry?: string }) {
  const { user: name } = key;
  // Cargo's protocol has the token alone.
  const plain = key.registry === "cargo" ? (value: string) => value : (value: string) => `Bearer ${value}`;
  const basic = (value: string) => `Basic ${Buffer.from(`${name}:${value}`).toString("base64")}`;
  return { header: "Authorization", textOf: name === undefined ? plain : basic };
}

/** The worker's variable with the value. */
export const keyVariable = (name: string): string =>
  `LONGHAUL_KEY_${name.toUpperCase().replaceAll("-", "_")}`;

/** Shorter values could not be masked: they may be words. Equal to what the sanitizer leaves out. */
const MIN_VALUE_CHARS = 8;

/** What a worker knows of keys. */
export interface KeyRing {
  readonly definitions: KeyDefinitions;
  /** Read again at each call. */
  readonly valueOf: (name: string) => string | undefined;
}

/** Why a key has no value that could be used, with what to do; undefined if it has. */
export function valueProblem(name: string, value: string | undefined): string | undefined {
  const variable = keyVariable(name);
  if (value === undefined || value === "") return `the key ${name} needs ${variable}, which is not set`;
  if (!/^[!-~]+$/.test(value))
    return `${variable} has characters that no header can have, or a blank or an end of line`;
  return value.length < MIN_VALUE_CHARS
    ? `${variable} is shorter than ${MIN_VALUE_CHARS} characters, so it could not be masked in what the sandbox gets`
    : undefined;
}
