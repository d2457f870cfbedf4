/**
 * What the words of Git, curl and ssh mean, and which of them say what is wrong. Their meaning is in one table, held against their texts by a test. Whatever is not in it is told at once, in
 * their own words.
 */
import { passes, inOneLine, saysWhy } from "../contract/errors.ts";
import { cutChars } from "../text/cut.ts";
import type { RemoteTrouble } from "./trouble.ts";

type Kind = RemoteTrouble["kind"];

/** How the system words a failed call, at the end of a line: it says more than the call that failed. */
const OF_SYSTEM: readonly (readonly [RegExp, Kind])[] = [
  [
    /Cannot allocate memory|Resource temporarily unavailable|Too many open files( in system)?|No buffer space available/,
    "memory",
  ],
  [/No space left on device|Read-only file system|Disk quota exceeded/, "disk"],
  [
    /Connection (reset by peer|refused|timed out)|Broken pipe|Network is (unreachable|down)|No route to host|Host is down|Software caused connection abort|Transport endpoint is not connected|Temporary failure in name resolution|(Name or service|nodename nor servname).*not known/,
    "away",
  ],
  [
    /Permission denied|Operation not permitted|Not a directory|Is a directory|Input\/output error|Stale (NFS )?file handle|Text file busy|Device or resource busy|File too large|Structure needs cleaning|Bad file descriptor|Interrupted system call/,
    "ours",
  ],
].map(([pattern, kind]) => [
  new RegExp(`^(?:fatal|error|warning): .*: (?:${(pattern as RegExp).source})\\.?$`, "im"),
  kind as Kind,
]);

/** Words of Git, curl and ssh by what they mean; the first that fits counts. */
const MEANINGS: readonly (readonly [RegExp, Kind])[] = [
  [
    /died of signal (6|7|9|11|SIG(KILL|ABRT|BUS|SEGV))\b|out of memory|data too large to fit into virtual memory|(cannot|unable to) (allocate memory|fork|spawn|mmap|create (\w+ )?(async |load_\w+ )?(thread|pipe|async))|can't start thread|fork (\(async\) )?failed|\b(ENOMEM|EAGAIN|EMFILE|ENFILE)\b|Resource temporarily unavailable|mmap failed|cannot be mapped|A memory function failed/i,
    "memory",
  ],
  [
    /No space left on device|Read-only file system|Disk quota exceeded|out of disk ?space|\b(ENOSPC|EROFS|EDQUOT)\b/i,
    "disk",
  ],
  [
    /could not read (Username|Password)|Authentication failed|terminal prompts disabled|error: 40[13]\b|HTTP 40[13]\b|Permission denied[,. ]*(\(|please)|^\S+@\S+: Permission denied|^Load key .*: (Permission denied|error in libcrypto|invalid format)|HTTP Basic: Access denied|Host key verification failed|Too many authentication failures|host key is known for/im,
    "credential",
  ],
  ...OF_SYSTEM,
  [
    /object directory .* does not exist|unable to normalize alternate|\b(object|refname|tree-ish|replacement) (\S+ )?not found|object not found|the object \S+ does not exist/i,
    "ours",
  ],
  [/not found|does not exist|does not appear to be a git repository|error: 404/i, "unknown"],
  [
    /certificate|mismatched algorithms|dubious ownership|unsafe repository|no matching (host key|key exchange|cipher|MAC)|unable to find remote helper|unable to get password|CONNECT tunnel failed, response 40[37]/i,
    "refused",
  ],
  [
    /(unable to write|write error|error writing).*(to remote|flush packet|delim packet|response end packet)|packet write (with format )?failed|flush packet write failed/i,
    "away",
  ],
  [
    /cannot lock ref|Unable to create '.*\.lock'|not a git repository|bad (config (line|file|value|variable)|object|packed object|tree object|signature)|corrupt|does not match index|far too short|is empty$|did not send all necessary objects|unable to (write|create|open|read|unlink|unpack|append|lock|rename|set permission|migrate temporary)|(index-pack|pack-objects) (failed|died)|invalid index-pack output|cannot (open|mkdir|create)|failed to (write|unpack|read (ref|delta|blob))|could not (write|open|lock) |couldn't (write|read|create temporary)|garbage at end of loose object|hash mismatch|sha1 file .*(error|truncated)|not a GIT packfile|packfile .*(cannot be accessed|size changed|unavailable|claims to have)|insufficient permission|\b(EACCES|EPERM|ENOTDIR|EIO):|Input\/output error/im,
    "ours",
  ],
  [
    /could(n't| not) (resolve (host|proxy)|connect)|couldn't resolve host|failed to connect|connection (was )?(refused|timed? ?-?out|reset|closed|aborted|died|lost)|timed? ?-?out\b|network is (unreachable|down)|no route to host|host is (down|unreachable)|temporary failure|name or service not known|nodename nor servname|empty reply|returned nothing|early EOF|unexpected disconnect|unexpected eof|hung up (unexpectedly|upon)|bytes of (body are still expected|length header were received)|RPC failed; (result=\d|curl (5|6|7|16|18|28|52|55|56|92)\b)|rate limited by|transfer closed|transferred a partial file|(recv|send) failure|failure when receiving|failed sending data|failed to read data|HTTP\/?2 framing layer|SSL_ERROR_SYSCALL|SSL_read|SSL_connect|SSL connect error|GnuTLS recv error|GnuTLS send error|gnutls_handshake|GnuTLS, handshake failed|non-properly terminated|(kex_exchange|ssh_exchange)_identification|banner exchange|message authentication code incorrect|closed by remote host|MaxStartups|Not allowed at this time|server \S+ not responding|too slow|took longer than|not closed cleanly|CONNECT aborted|CONNECT tunnel failed|proxy CONNECT|broken pipe|unable to look up/i,
    "away",
  ],
];

/** As Git and curl name the status of a server's answer. */
const HTTP_STATUS = /\b(?:error:|HTTP(?: code)?|response) ([45]\d\d)\b/i;

/** The server's own lines, which may say anything. */
const OF_SERVER = /^(remote:|(fatal|error): remote (error|unpack failed):)/;

/** Addresses, and hosts as curl and ssh name them: a repository may be called `corrupt`, and a host `certificate.example.org`. */
const NAMES = new RegExp(
  [
    String.raw`(?<=')[a-z][a-z0-9+.-]*:\/\/[^'\n]*(?=')`,
    String.raw`[a-z][a-z0-9+.-]*:\/\/\S+`,
    String.raw`(?<=\bhost: )[\w.-]+`,
    String.raw`(?<=\bhostname )[\w.-]+(?=:)`,
    String.raw`(?<=\b(?:host|connect to) )[\w.-]+(?= port\b)`,
    String.raw`(?<=\b(?:host|connect to) )[\w-]+(?:\.[\w-]+)+`,
  ].join("|"),
  "gi",
);

/** Without the server's own lines, but for those that say that there is no such repository. */
export function kindOfTrouble(err: string): Kind {
  const lines = err.split("\n");
  const own = lines
    .filter((line) => !OF_SERVER.test(line))
    .join("\n")
    .replace(NAMES, "…");
  const isAbsent = lines.some(
    (line) => OF_SERVER.test(line) && /not found|could not be found|does not exist|not exported/i.test(line),
  );
  const meant = MEANINGS.find(([pattern]) => pattern.test(own))?.[1] ?? "refused";
  const kind = ["memory", "disk", "credential", "unknown"].includes(meant) ? meant : (byStatus(own) ?? meant);
  return isAbsent && kind !== "credential" ? "unknown" : kind;
}

function byStatus(err: string): Kind | undefined {
  const status = HTTP_STATUS.exec(err)?.[1];
  if (status === undefined) return undefined;
  return passes.http(Number(status)) ? "away" : "refused";
}

/** As many as a delivery's row has for its reason. */
const MAX_CHARS = 500;

/** What Git adds to every failure, progress, and lines that only decorate. */
const NOISE =
  /^(hint:|warning:|Cloning into |To \S+$|Could not read from remote repository|Please make sure you have the correct access rights|and the repository exists|failed to push some refs|the remote end hung up|(Enumerating|Counting|Compressing|Receiving|Resolving) |Total \d|[^\p{L}\p{N}]*$)/iu;
/** What ssh says of a key or a host before it says that it failed. */
const OF_SSH =
  /^(Load key |Permissions \d+ for |Offending .* key in |Received disconnect|[@ ]*WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED)/;
const FAILURE = /^(fatal|error): */i;
const SERVER = /^remote: ?/;

/** Where to read more, and what only the server's operators need: after all else. */
const ASIDE =
  /^(Trace: |See |Learn (how|more)|Review all |\(\?\) Learn|For more information|https?:\/\/docs\.|Found \d+ violation)/i;
/**
 * What is wrong, by Git's error output: the server's own words if it said any, the line with the cause first; else the first failure that Git names, else the last line.
 * Without control characters: a server's text must not draw on a terminal.
 */
export function gitReason(err: string): string {
  const all = err
    .replaceAll(/[^\P{Cc}\n]/gu, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const telling = all.filter((line) => !NOISE.test(bare(line)));
  const lines = telling.length > 0 ? telling : all;
  const server = lines.filter((line) => SERVER.test(line)).map(bare);
  if (server.length > 0) return asReason(causeFirst(unwrapped(server)));
  const first = lines.findIndex((line) => FAILURE.test(line));
  const at = first < 0 ? lines.length - 1 : first;
  const told = lines.slice(at, hasMore(lines[at]) ? at + 2 : at + 1);
  return asReason([...all.filter((line) => OF_SSH.test(line) && !told.includes(line)), ...told]);
}

/** A sentence that goes on in the next line, as one. */
const unwrapped = (lines: readonly string[]): string[] =>
  lines.reduce<string[]>((gitOutput, line) => {
    const last = gitOutput.at(-1);
    const goesOn = last !== undefined && /^\p{Ll}+ \p{L}/u.test(line) && /[\p{L}\p{N},]$/u.test(last);
    return goesOn ? [...gitOutput.slice(0, -1), `${last} ${line}`] : [...gitOutput, line];
  }, []);

/** All that a server, such as its hook, printed: the line that names the cause, the others in order, then where to read more. */
function causeFirst(lines: readonly string[]): string[] {
  const aside = lines.filter((line) => ASIDE.test(line));
  const telling = lines.filter((line) => !ASIDE.test(line));
  const at = telling.findIndex(saysWhy);
  const cause = telling.slice(Math.max(0, at), Math.max(0, at) + 1);
  return [...cause, ...telling.filter((line) => !cause.includes(line)), ...aside];
}

/** Such as `Repository lacks these prerequisite commits:`. */
const hasMore = (line: string | undefined): boolean => line?.endsWith(":") === true;

/** Without the sender, a failure's mark, and what only draws: bullets and rules. */
function bare(line: string): string {
  return line
    .replace(SERVER, "")
    .trim()
    .replace(FAILURE, "")
    .replace(/^(-|\*|@|\p{Pd}{2,}|[=#]{2,}) +(?:WARNING: )?/u, "")
    .replace(/\s*(@|\p{Pd}{2,}|[=#─━]{2,})$/u, "");
}

/** A clause that a sentence may end with. */
function asReason(lines: readonly string[]): string {
  const text = inOneLine(lines.map(bare));
  return cutChars(text.replace(/[.:]+$/, ""), MAX_CHARS) || "no reason was given";
}
