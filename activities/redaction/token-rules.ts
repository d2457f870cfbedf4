/** Secrets recognised by their form, whoever owns them. Source: the vendors' documented formats. */

/** Some characters of a class, by their codes below 128. */
export interface CharRun {
  readonly chars: Uint8Array;
  readonly min: number;
  readonly max: number;
  /** The code of a further character that counts only where a line begins. */
  readonly afterLine?: number;
}

export interface TokenRule {
  /** Literals (without regard to ASCII case if `caseless`) and runs, one after the other; the last may be unbounded. */
  readonly parts: readonly (string | CharRun)[];
  /** How many leading parts stay readable: the name before a value. */
  readonly shown: number;
  readonly caseless: boolean;
  /** Whether the token must begin at the start of a word: `task-…` contains no `sk-` token. */
  readonly atWord: boolean;
}

const WORD = /[A-Za-z0-9]/;
const URL_SAFE = /[A-Za-z0-9_-]/;
const BASE64 = /[A-Za-z0-9+/=]/;
/** Lines of base64, numbered, quoted or commented out. */
const KEY_BODY = /[A-Za-z0-9+/=\s\\>#|*:]/;
const DASH = 0x2d;
const ASSIGNED = /[\s:='"\\,>]/;

function run(chars: RegExp, min: number, max = Number.POSITIVE_INFINITY): CharRun {
  const table = Uint8Array.from({ length: 128 }, (_none, code) =>
    Number(chars.test(String.fromCharCode(code))),
  );
  return { chars: table, min, max };
}

function token(prefix: string, chars: RegExp, min: number): TokenRule {
  return { parts: [prefix, run(chars, min)], shown: 0, caseless: false, atWord: true };
}

/** A value that only the text before it identifies as a secret. */
function namedValue(name: readonly (string | CharRun)[], value: CharRun): TokenRule {
  return { parts: [...name, value], shown: name.length, caseless: true, atWord: false };
}

const PRIVATE_KEYS = ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "].map(
  (kind) => `${kind}PRIVATE KEY`,
);

export const TOKEN_RULES: readonly TokenRule[] = [
  // `sk-` plus words is common in CSS, so the longer forms are required.
  ...["sk-proj-", "sk-ant-", "sk-svcacct-", "sk-or-"].map((prefix) => token(prefix, URL_SAFE, 20)),
  token("sk-", WORD, 32),
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map((prefix) => token(prefix, WORD, 36)),
  token("github_pat_", /[A-Za-z0-9_]/, 22),
  token("glpat-", URL_SAFE, 20),
  ...["AKIA", "ASIA"].map((prefix) => token(prefix, /[A-Z0-9]/, 16)),
  ...["xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "xapp-"].map((prefix) =>
    token(prefix, /[A-Za-z0-9-]/, 20),
  ),
  token("AIza", URL_SAFE, 35),
  token("ya29.", URL_SAFE, 20),
  token("npm_", WORD, 36),
  token("pypi-Ag", URL_SAFE, 50),
  token("hf_", WORD, 30),
  ...["sk_live_", "rk_live_"].map((prefix) => token(prefix, WORD, 20)),
  // A JSON web token: header and payload are objects, so both begin with `{"`.
  {
    ...token("eyJ", URL_SAFE, 8),
    parts: ["eyJ", run(URL_SAFE, 8, 512), ".eyJ", run(URL_SAFE, 8, 8_192), ".", run(URL_SAFE, 16)],
  },
  // The body of a private key, up to the dashes of its end; in JSON its line ends are `\n`. Also with what stands in front of lines.
  ...[...PRIVATE_KEYS, "PGP PRIVATE KEY BLOCK"].flatMap((kind) =>
    [
      [`-----BEGIN ${kind}-----`, run(KEY_BODY, 40)],
      // As a patch removes it.
      [`------BEGIN ${kind}-----`, { ...run(KEY_BODY, 40), afterLine: DASH }],
      [
        `-----BEGIN ${kind}-----`,
        run(/[\s\\nr]/, 1, 8),
        "Proc-Type:",
        run(/[ \w,]/, 1, 40),
        run(/[\s\\nr]/, 1, 8),
        "DEK-Info:",
        run(/[ \w,-]/, 1, 80),
        run(KEY_BODY, 40),
      ],
    ].map((parts) => ({ ...token("", BASE64, 0), parts, atWord: false })),
  ),
  namedValue(
    ["secret", run(/[_-]/, 0, 1), "access", run(/[_-]/, 0, 1), "key", run(ASSIGNED, 1, 12)],
    run(/[A-Za-z0-9+/]/, 40),
  ),
  namedValue(["accountkey=", run(/[\s'"]/, 0, 2)], run(BASE64, 40)),
  // What git keeps as `http.extraheader`, and any other header with credentials.
  ...["basic", "bearer", "token"].map((scheme) =>
    namedValue(
      ["authorization", run(ASSIGNED, 1, 8), scheme, run(/\s/, 1, 4)],
      run(/[A-Za-z0-9+/=_.~-]/, 20),
    ),
  ),
];
