/**
 * What Git's words mean, held against the texts that Git (its sources of 2026-08 and 2.39), curl and OpenSSH print when a fetch or a
 * push fails. Each is named with its kind; what is in none of the lists is told at once.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { kindOfTrouble } from "../../../activities/git/git-words.ts";
import { remoteTrouble } from "../../../activities/git/remote.ts";
import { toRefusal } from "../../../activities/git/trouble.ts";

const URL = "https://git.test/a/b";
const isPassing = (err: string) => toRefusal(remoteTrouble(URL, { err })).isPassing;

const GIT: Readonly<Record<string, readonly string[]>> = {
  away: [
    "fatal: early EOF",
    "fatal: fetch-pack: unexpected disconnect while reading sideband packet",
    "send-pack: unexpected disconnect while reading sideband packet",
    "fatal: the remote end hung up unexpectedly",
    "fatal: the remote end hung up upon initial contact",
    "fatal: unable to look up git.test (port 9418) (Temporary failure in name resolution)",
    "fatal: unable to connect to git.test:\ngit.test[0: 192.0.2.1]: errno=Connection refused",
    "error: RPC failed; curl 56 Recv failure: Connection reset by peer",
    "error: RPC failed; curl 92 anything at all",
    "error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502",
    "error: 7 bytes of body are still expected",
    "error: 3 bytes of length header were received",
    "fatal: rate limited by 'https://git.test/a/b/', please try again in 7 seconds",
    "fatal: rate limited by 'https://git.test/a/b/', please try again later",
    "fatal: unable to write flush packet: Broken pipe",
    "fatal: unable to write to remote: Broken pipe",
    "fatal: packet write failed: Connection reset by peer",
    "fatal: flush packet write failed",
    "fatal: read error: Connection reset by peer",
    "git fetch took longer than 1800 s",
  ],
  memory: [
    "fatal: Out of memory, malloc failed (tried to allocate 7 bytes)",
    "fatal: Out of memory, calloc failed",
    "fatal: Out of memory, realloc failed",
    "fatal: Out of memory, strdup failed",
    "fatal: Out of memory? fdopen failed: Cannot allocate memory",
    "fatal: data too large to fit into virtual memory space",
    "error: Data too large to fit into virtual memory space.",
    "fatal: mmap failed: Cannot allocate memory",
    "error: unable to mmap objects/17/a: Cannot allocate memory",
    "fatal: packfile objects/pack/a.pack cannot be mapped: Cannot allocate memory",
    "error: cannot fork() for git-remote-https: Resource temporarily unavailable",
    "error: fork (async) failed: Resource temporarily unavailable",
    "error: cannot spawn git-remote-https: Too many open files",
    "error: cannot create stdout pipe for index-pack: Too many open files",
    "error: cannot create pipe: Too many open files in system",
    "error: cannot create async thread: Resource temporarily unavailable",
    "fatal: unable to create thread: Resource temporarily unavailable",
    "fatal: unable to create load_cache_entries thread: Resource temporarily unavailable",
    "fatal: can't start thread for copying data: Resource temporarily unavailable",
    "fatal: unable to fork",
    "fatal: fetch-pack: unable to fork off sideband demultiplexer",
    "fatal: send-pack: unable to fork off fetch subprocess",
    "fatal: fetch-pack: unable to spawn http-fetch",
    "error: index-pack died of signal 9",
    "error: pack-objects died of signal 11",
    "error: git-remote-https died of signal 6",
    "\nfatal: git fetch died of signal SIGKILL",
  ],
  disk: [
    "fatal: write error: No space left on device",
    "fatal: sha1 file 'objects/pack/tmp_pack_1' write error. Out of diskspace",
    "fatal: sha1 file 'objects/pack/tmp_pack_1' write error: No space left on device",
    "error: unable to write file ./objects/17/a: No space left on device",
    "fatal: cannot create 'objects/pack/tmp_pack_1': Read-only file system",
    "fatal: Unable to create temporary file '/git/mirrors/a.git/objects/pack/tmp_1': Disk quota exceeded",
    "error: cannot lock ref 'refs/heads/main': Unable to create '/git/a.git/refs/heads/main.lock': No space left on device",
    "fatal: Unable to create '/git/a.git/shallow.lock': Read-only file system",
  ],
  ours: [
    "error: cannot lock ref 'refs/heads/main': Unable to create '/git/a.git/refs/heads/main.lock': File exists.",
    "fatal: Unable to create '/git/a.git/packed-refs.lock': File exists.",
    "fatal: Unable to create '/git/a.git/shallow.lock': Permission denied",
    "error: unable to write new packed-refs: File too large",
    "error: could not lock config file config: File exists",
    "fatal: could not open 'FETCH_HEAD' for writing: Permission denied",
    "fatal: could not write to 'shallow': Input/output error",
    "error: cannot open 'FETCH_HEAD': Permission denied",
    "fatal: sha1 file 'objects/pack/tmp_pack_1' write error: Input/output error",
    "fatal: objects/pack/a.pack: sha1 file read error: Input/output error",
    "fatal: objects/pack/a.pack: sha1 file truncated",
    "error: object file objects/17/a is empty",
    "fatal: loose object 17 (stored in objects/17/a) is corrupt",
    "error: garbage at end of loose object '17'",
    "error: hash mismatch for 17 (expected 18)",
    "error: unable to unpack header of 17",
    "fatal: failed to read object 17: Input/output error",
    "error: file objects/pack/a.pack is far too short to be a packfile",
    "error: packfile objects/pack/a.pack does not match index",
    "error: packfile objects/pack/a.pack cannot be accessed",
    "fatal: packed object 17 (stored in objects/pack/a.pack) is corrupt",
    "fatal: Unexpected tail checksum for objects/pack/a.pack (disk corruption?)",
    "fatal: pack is corrupted (SHA1 mismatch)",
    "fatal: bad object refs/heads/main",
    "fatal: not a git repository (or any of the parent directories): .git",
    "fatal: bad config line 1 in file config",
    "error: https://git.test/a/b did not send all necessary objects",
    "fatal: fetch-pack: invalid index-pack output",
    "fatal: index-pack failed",
    "error: index-pack died",
    "error: object directory /git/mirrors/a.git/objects does not exist; check .git/objects/info/alternates",
    "fatal: object 17 not found",
    "fatal: object not found: 17",
    "fatal: unable to create temporary object directory",
    "fatal: unable to migrate temporary objects",
    "fatal: cannot come back to cwd: Stale file handle",
  ],
  unknown: [
    "fatal: repository 'https://git.test/a/b/' not found",
    "fatal: '/srv/a' does not appear to be a git repository",
    "remote: Repository not found.\nfatal: repository 'https://git.test/a/b/' not found",
    "fatal: unable to access 'https://git.test/a/b/': The requested URL returned error: 404",
    "fatal: remote error: Repository not found.",
    "fatal: remote error: access denied or repository not exported: /a",
  ],
  credential: [
    "fatal: Authentication failed for 'https://git.test/a/b/'",
    "fatal: could not read Username for 'https://git.test': terminal prompts disabled",
    "fatal: could not read Password for 'https://a@git.test': terminal prompts disabled",
    "fatal: unable to access 'https://git.test/a/b/': The requested URL returned error: 401",
    "fatal: unable to access 'https://git.test/a/b/': The requested URL returned error: 403",
    "remote: HTTP Basic: Access denied\nfatal: Authentication failed for 'https://git.test/a/b/'",
  ],
  refused: [
    "fatal: mismatched algorithms: client sha1; server sha256",
    "fatal: detected dubious ownership in repository at '/srv/a'",
    "fatal: unable to find remote helper for 'https'",
    "fatal: transport 'file' not allowed",
    "fatal: protocol 'foo' is not supported",
    "fatal: protocol error: bad line length character: <htm",
    "fatal: protocol error: impossibly long line",
    "fatal: invalid server response; got 'x'",
    "fatal: https://git.test/a/b/info/refs not valid: is this a git repository?",
    "fatal: remote error: upload-pack: not our ref 17",
    "fatal: remote error: the server is out of memory and cannot lock ref",
    "error: remote unpack failed: unable to create temporary object directory",
    "error: Server does not allow request for unadvertised object 17",
    "fatal: Server does not support shallow requests",
    "fatal: couldn't find remote ref refs/heads/gone",
    "fatal: no matching remote head",
    "fatal: pack exceeds maximum allowed size (1.00 GiB)",
    "fatal: fsck error in packed object",
    "fatal: attempting to allocate 7 over limit 5",
    "fatal: the receiving end does not support push options",
    "fatal: Unable to update url base from redirection:\n  asked for: https://git.test/a\n   redirect: https://login.test/",
    "error: failed to push some refs to 'https://git.test/a/b'",
    "fatal: credential url cannot be parsed: x",
    "fatal: newline is forbidden in git:// hosts and repo paths",
    "error: pathspec 'x' did not match any file(s) known to git",
    "fatal: refusing to fetch into branch 'refs/heads/main' checked out at '/a'",
    "fatal: shallow file has changed since we read it",
  ],
};

/** What stands behind `unable to access '…': ` or `RPC failed; curl N `. */
const CURL: Readonly<Record<string, readonly string[]>> = {
  away: [
    "Could not resolve host: git.test",
    "Could not resolve proxy: proxy.test",
    "Couldn't resolve host name",
    "Failed to connect to git.test port 443 after 7 ms: Connection refused",
    "Failed to connect to git.test port 443 after 7 ms: Couldn't connect to server",
    "Couldn't connect to server",
    "Connection timed out after 7 milliseconds",
    "Connection timeout after 7 ms",
    "Timeout was reached",
    "Resolving timed out after 7 milliseconds",
    "Operation timed out after 7 milliseconds with 0 bytes received",
    "Operation too slow. Less than 1 bytes/sec transferred the last 60 seconds",
    "SSL connection timeout",
    "Recv failure: Connection reset by peer",
    "Send failure: Broken pipe",
    "Failure when receiving data from the peer",
    "Failed sending data to the peer",
    "Empty reply from server",
    "Server returned nothing (no headers, no data)",
    "Transferred a partial file",
    "transfer closed with outstanding read data remaining",
    "transfer closed with 7 bytes remaining to read",
    "HTTP/2 stream 5 was not closed cleanly: INTERNAL_ERROR (err 2)",
    "HTTP/2 stream 1 was reset by server: connection reset",
    "Error in the HTTP2 framing layer",
    "GnuTLS recv error (-54): Error in the pull function.",
    "GnuTLS recv error (-110): The TLS connection was non-properly terminated.",
    "GnuTLS, handshake failed: The TLS connection was non-properly terminated.",
    "gnutls_handshake() failed: The TLS connection was non-properly terminated.",
    "OpenSSL SSL_read: SSL_ERROR_SYSCALL, errno 104",
    "OpenSSL SSL_connect: Connection reset by peer in connection to git.test:443",
    "SSL_ERROR_SYSCALL in connection to git.test:443",
    "SSL connect error",
    "error:0A000126:SSL routines::unexpected eof while reading",
    "Proxy CONNECT aborted",
    "CONNECT tunnel failed, response 502",
    "Received HTTP code 503 from proxy after CONNECT",
    "The requested URL returned error: 408",
    "The requested URL returned error: 429",
    "The requested URL returned error: 500",
    "The requested URL returned error: 503",
    "The requested URL returned error: 522",
  ],
  memory: ["A memory function failed", "Out of memory"],
  refused: [
    "server certificate verification failed. CAfile: none CRLfile: none",
    "SSL certificate problem: self-signed certificate in certificate chain",
    "SSL certificate problem: certificate has expired",
    "SSL: no alternative certificate subject name matches target host name 'git.test'",
    "SSL peer certificate or SSH remote key was not OK",
    "Problem with the SSL CA cert (path? access rights?)",
    "error setting certificate file: /none",
    "Received HTTP code 407 from proxy after CONNECT",
    "CONNECT tunnel failed, response 403",
    "CONNECT tunnel failed, response 407",
    "Unsupported protocol",
    "URL rejected: Bad hostname",
    "Too many redirects",
    "Maximum (20) redirects followed",
    "Unrecognized or bad HTTP Content or Transfer-Encoding",
    "Received HTTP/0.9 when not allowed",
    "The requested URL returned error: 400",
    "The requested URL returned error: 410",
    "The requested URL returned error: 413",
    "The requested URL returned error: 451",
  ],
  unknown: ["The requested URL returned error: 404"],
  credential: ["The requested URL returned error: 401", "The requested URL returned error: 403"],
};

const SSH: Readonly<Record<string, readonly string[]>> = {
  away: [
    "ssh: connect to host git.test port 22: Connection refused",
    "ssh: connect to host git.test port 22: Connection timed out",
    "ssh: connect to host git.test port 22: Operation timed out",
    "ssh: connect to host git.test port 22: No route to host",
    "ssh: connect to host git.test port 22: Network is unreachable",
    "ssh: Could not resolve hostname git.test: Temporary failure in name resolution",
    "ssh: Could not resolve hostname git.test: Name or service not known",
    "ssh: Could not resolve hostname git.test: nodename nor servname provided, or not known",
    "kex_exchange_identification: Connection closed by remote host\nConnection closed by 192.0.2.1 port 22",
    "kex_exchange_identification: read: Connection reset by peer",
    "ssh_exchange_identification: Connection closed by remote host",
    "Connection timed out during banner exchange",
    "banner exchange: Connection to 192.0.2.1 port 22: Broken pipe",
    "client_loop: send disconnect: Broken pipe",
    "packet_write_wait: Connection to 192.0.2.1 port 22: Broken pipe",
    "ssh_dispatch_run_fatal: Connection to 192.0.2.1 port 22: message authentication code incorrect",
    "Timeout, server git.test not responding.",
    "Connection reset by 192.0.2.1 port 22",
    "Connection to git.test closed by remote host.",
    "Exceeded MaxStartups",
    "Not allowed at this time",
  ],
  credential: [
    "git@git.test: Permission denied (publickey).",
    "git@git.test: Permission denied (publickey,password,keyboard-interactive).",
    "Permission denied, please try again.",
    "Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures",
    "Host key verification failed.",
    "No ED25519 host key is known for git.test and you have requested strict checking.",
    'Load key "/key": error in libcrypto',
    'Load key "/key": invalid format',
    'Load key "/key": Permission denied',
  ],
  refused: [
    "Unable to negotiate with 192.0.2.1 port 22: no matching host key type found. Their offer: ssh-rsa",
    "Unable to negotiate with 192.0.2.1 port 22: no matching key exchange method found. Their offer: diffie-hellman-group1-sha1",
    "No user exists for uid 1000",
    "Bad owner or permissions on /config",
    "command-line: line 0: Bad configuration option: x",
  ],
};

const AFTER_SSH =
  "\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.";

const CASES = [
  ["Git", GIT, (text: string) => [text]],
  [
    "curl",
    CURL,
    (text: string) => [`fatal: unable to access '${URL}/': ${text}`, `error: RPC failed; curl 99 ${text}`],
  ],
  [
    "ssh",
    SSH,
    (text: string) => [text, `${text}${AFTER_SSH}`, `${text.replaceAll("\n", "\r\n")}\r${AFTER_SSH}`],
  ],
] as const;

describe.each(CASES)("the words of %s", (_, kinds, forms) => {
  it.each(Object.keys(kinds))("that mean %s", (kind) => {
    const texts = (kinds[kind] ?? []).flatMap(forms);
    expect(texts.map((text) => [text, kindOfTrouble(text)])).toEqual(texts.map((text) => [text, kind]));
  });
});

it("what passes is the network, and the worker's own memory, disk and copies; nothing else", () => {
  for (const texts of CASES.flatMap(([, kinds]) => Object.values(kinds)))
    for (const text of texts)
      expect(isPassing(`fatal: ${text}`.replace("fatal: fatal:", "fatal:")), text).toBe(
        ["away", "memory", "disk", "ours"].includes(
          kindOfTrouble(`fatal: ${text}`.replace("fatal: fatal:", "fatal:")),
        ),
      );
});

/** By the system's word at its end, whichever call of Git failed: each is of some `die_errno` or `error_errno` of its sources. */
const CALLS = [
  "cannot open 'X'",
  "could not open 'X' for reading",
  "could not open 'X' for writing",
  "could not write to 'X'",
  "could not stat X",
  "unable to create 'X'",
  "unable to write file X",
  "unable to open X",
  "unable to read X",
  "Couldn't create temporary file X",
  "sha1 file 'X' write error",
  "X: sha1 file read error",
  "cannot read ref file 'X'",
  "failed to read ref: 'X'",
  "read error while indexing X",
  "error reading from X",
  "cannot fstat packfile",
  "cannot pread pack file",
  "error while closing pack file",
  "failed write to rev-list",
  "failed to close rev-list's stdin",
  "dup2() in child failed",
  "cannot exec 'X'",
  "waitpid for X failed",
  "poll failed",
  "unable to get current working directory",
  "read(X) failed",
  "write(X) failed",
  "full write to remote helper failed",
  "read error",
];
const SYSTEM: Readonly<Record<string, readonly string[]>> = {
  memory: [
    "Cannot allocate memory",
    "Resource temporarily unavailable",
    "Too many open files",
    "Too many open files in system",
  ],
  disk: ["No space left on device", "Read-only file system", "Disk quota exceeded"],
  ours: [
    "Permission denied",
    "Operation not permitted",
    "Not a directory",
    "Input/output error",
    "Stale file handle",
    "Device or resource busy",
  ],
  away: ["Broken pipe", "Connection reset by peer", "Connection timed out", "Network is unreachable"],
};

it.each(Object.keys(SYSTEM))("any call of Git that failed because of the system means %s", (kind) => {
  for (const call of CALLS)
    for (const why of SYSTEM[kind] ?? [])
      for (const mark of ["fatal", "error"])
        expect([call, why, kindOfTrouble(`${mark}: ${call.replace("X", "objects/x")}: ${why}`)]).toEqual([
          call,
          why,
          kind,
        ]);
});

it("a server's own words direct nothing but that there is no such repository", () => {
  const said = [GIT, CURL, SSH]
    .flatMap((kinds) => Object.values(kinds).flat())
    .filter((text) => !/not found|does not exist|not exported|\n/i.test(text));
  for (const text of said)
    for (const mark of ["remote: ", "fatal: remote error: ", "error: remote unpack failed: "])
      expect([text, kindOfTrouble(`${mark}${text}`)]).toEqual([text, "refused"]);
});

it("anything that nobody knows is told at once", () => {
  const word = fc
    .stringMatching(/^[a-z]{2,9}$/)
    .filter((one) => !/aborted|corrupt|died|closed|reset|lost/.test(one));
  fc.assert(
    fc.property(fc.array(word, { minLength: 2, maxLength: 7 }), (words) => {
      expect(kindOfTrouble(`fatal: ${words.join(" ")}`)).toBe("refused");
    }),
    { numRuns: 2_000 },
  );
});
