/** Which files of a workspace look as if they held credentials, by their names and the beginning of what they contain. Pure. */
import type { WorkspaceFile } from "../../activities/store/workspace-pack.ts";

/** Templates and public halves hold none. */
const HARMLESS =
  /(\.(example|sample|template|tmpl|dist|defaults?|pub)|(^|\/)\.env\.d\.ts|(^|\/)known_hosts)$/i;

/** Folders in a home that hold what a program logs in with. */
const FOLDERS =
  /(^|\/)(\.aws|\.azure|\.ssh|\.gnupg|\.gcloud|\.config\/(gcloud|gh|glab-cli|hub|doctl|op|rclone)|\.kube|\.oci|\.password-store)\//;

/** Files that their programs write credentials into. Sources: the manuals of the programs. */
const NAMES = new RegExp(
  `(^|/)(${[
    String.raw`\.env[^/]*|[^/]+\.env|\.dev\.vars[^/]*`,
    String.raw`[._]netrc|\.pgpass|pgpass\.conf|\.my(login)?\.cnf|\.htpasswd|\.git-credentials|\.config/git/credentials`,
    String.raw`\.pypirc|\.gem/credentials|\.cargo/credentials(\.toml)?|\.composer/auth\.json|auth\.json|\.s3cfg|\.boto|\.passwd-s3fs`,
    String.raw`\.docker/config\.json|\.dockercfg|\.dockerconfigjson|\.config/containers/auth\.json`,
    String.raw`kubeconfig[^/]*|[^/]+\.kubeconfig|\.vault-token|\.terraformrc|credentials\.tfrc\.json|terraform\.tfstate(\.backup)?`,
    String.raw`credentials(\.(json|ya?ml|toml|ini|csv))?|\.?secrets?\.(json|ya?ml|toml|ini|env)|application_default_credentials\.json`,
    String.raw`(service[-_]?account|client_secret)[^/]*\.json|master\.key|rootkey\.csv`,
    String.raw`id_(rsa|dsa|ecdsa|ed25519)(_sk)?|[^/]+\.(ppk|p12|pfx|jks|keystore|kdbx)`,
  ].join("|")})$`,
  "i",
);

/** Files that hold a credential only if they have such a line; a reference to a variable is none. */
const LINES: readonly (readonly [RegExp, RegExp])[] = [
  [/(^|\/)\.?npmrc$/, /_(auth|authToken|password)\s*=\s*"?[^\s"$]/],
  [/(^|\/)\.yarnrc(\.yml)?$/, /(npmAuth(Token|Ident)|_authToken)"?\s*:?\s*"?[^\s"$:]/],
  [/(^|\/)(\.?pip\.conf|pip\.ini|\.condarc|uv\.toml)$/, /:\/\/[^\s/@$]+@/],
  [/(^|\/)nuget\.config$/i, /ClearTextPassword|"Password"/i],
  [/(^|\/)settings(-security)?\.xml$/, /<(password|passphrase|master)>[^<$]/],
  [/(^|\/)gradle\.properties$/, /(password|token|secret)[\w.]*\s*[=:]\s*[^\s$]/i],
];
/** A certificate or a public key in the same form is none. */
const PRIVATE_KEY = /^[ \t]*-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----/m;

/** A key is at a file's beginning; settings are short. Source: ours. */
const LOOKED_AT_BYTES = 64 * 1024;

/** @returns the paths, in the files' order */
export function credentialFiles(files: readonly WorkspaceFile[]): string[] {
  return files
    .filter((file) => file.kind !== "folder" && !isGits(file.path) && mayHold(file))
    .map(({ path }) => path);
}

/** What is taken of a repository's own folder has no credentials: see `git-config.ts`. */
const isGits = (path: string): boolean => /(^|\/)\.git\//.test(path);

function mayHold(file: WorkspaceFile): boolean {
  if (HARMLESS.test(file.path)) return false;
  if (FOLDERS.test(file.path) || NAMES.test(file.path)) return true;
  if (file.kind !== "file") return false;
  const { bytes } = file;
  const size = Math.min(bytes.byteLength, LOOKED_AT_BYTES);
  const begin = Buffer.from(bytes.buffer, bytes.byteOffset, size);
  if (begin.includes("PRIVATE KEY") && PRIVATE_KEY.test(begin.toString("latin1"))) return true;
  return LINES.some(([name, line]) => name.test(file.path) && line.test(begin.toString("latin1")));
}
