/** The forms in which a secret may turn up in text. Pure. */

/** Shorter values are words: masking them would spoil ordinary text. */
const MIN_SECRET_CHARS = 8;
/** Shorter encodings of a secret's middle say too little to be told from chance. */
const MIN_ENCODED_CHARS = 8;

export interface SecretPattern {
  readonly chars: string;
  /** Encoders wrap their output: a line end may stand between any two characters. */
  readonly wrapped: boolean;
}

/** Tokens known by how they begin, whoever's they are. */
export interface TokenRule {
  readonly prefix: string;
  /** Characters that may follow, as the inside of a character class. */
  readonly chars: string;
  readonly min: number;
}

/** Source: the vendors' documented token formats; `sk-` plus words is common in CSS, hence the longer forms. */
export const TOKEN_RULES: readonly TokenRule[] = [
  { prefix: "sk-proj-", chars: "A-Za-z0-9_\\-", min: 20 },
  { prefix: "sk-ant-", chars: "A-Za-z0-9_\\-", min: 20 },
  { prefix: "sk-svcacct-", chars: "A-Za-z0-9_\\-", min: 20 },
  { prefix: "sk-or-", chars: "A-Za-z0-9_\\-", min: 20 },
  { prefix: "sk-", chars: "A-Za-z0-9", min: 32 },
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map((prefix) => ({ prefix, chars: "A-Za-z0-9", min: 36 })),
  { prefix: "github_pat_", chars: "A-Za-z0-9_", min: 22 },
  { prefix: "glpat-", chars: "A-Za-z0-9_\\-", min: 20 },
  { prefix: "AKIA", chars: "A-Z0-9", min: 16 },
  { prefix: "ASIA", chars: "A-Z0-9", min: 16 },
  ...["xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-"].map((prefix) => ({
    prefix,
    chars: "A-Za-z0-9\\-",
    min: 20,
  })),
  { prefix: "AIza", chars: "A-Za-z0-9_\\-", min: 35 },
  { prefix: "npm_", chars: "A-Za-z0-9", min: 36 },
  { prefix: "hf_", chars: "A-Za-z0-9", min: 30 },
  { prefix: "sk_live_", chars: "A-Za-z0-9", min: 20 },
  { prefix: "rk_live_", chars: "A-Za-z0-9", min: 20 },
];

/** All forms of all secrets, longest first, each once. `clean` is what text went through before it is searched. */
export function secretPatterns(
  secrets: readonly string[],
  clean: (text: string) => string,
): readonly SecretPattern[] {
  const patterns = new Map<string, SecretPattern>();
  const add = (chars: string, wrapped: boolean): void => {
    if (chars.length >= MIN_ENCODED_CHARS && !patterns.has(chars)) patterns.set(chars, { chars, wrapped });
  };
  for (const secret of secrets) {
    const value = secret.trim();
    if (value.length < MIN_SECRET_CHARS) continue;
    add(clean(value), false);
    add(JSON.stringify(clean(value)).slice(1, -1), false);
    for (const form of urlForms(value)) add(form, false);
    const bytes = Buffer.from(value, "utf8");
    for (const form of [bytes.toString("hex"), bytes.toString("hex").toUpperCase()]) add(form, true);
    for (const form of base64Forms(bytes)) add(form, true);
  }
  return [...patterns.values()].toSorted((left, right) => right.chars.length - left.chars.length);
}

function urlForms(value: string): string[] {
  const encoded = encodeURIComponent(value.toWellFormed());
  const lower = encoded.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase());
  const strict = encoded.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  return [encoded, lower, strict, encoded.replaceAll("%20", "+"), lower.replaceAll("%20", "+")];
}

/** What is sure to appear of the bytes' base64 at each of the three alignments, in both alphabets. */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes]);
    const from = Math.ceil((before * 8) / 6);
    const to = Math.floor((padded.length * 8) / 6);
    return (["base64", "base64url"] as const).map((alphabet) => padded.toString(alphabet).slice(from, to));
  });
}
