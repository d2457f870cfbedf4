/** The port to one sandbox, the place where commands run. Its host: sandbox-host.ts. */
export interface Sandbox {
  readonly container: string;
  /** Distinguishes this sandbox from another of the same name, and from itself after a restart. */
  readonly identity: {
    /** Name of its host, for display: it may change. */
    readonly host: string;
    /** Another volume of the same name has another identity. */
    readonly volume: string;
    readonly container: string;
    /** Id of one start of the sandbox's processes. */
    readonly boot: string;
    /** What it runs from: the image by digest, or its id if no registry has it. */
    readonly image?: string | undefined;
    /** Key of the base that its workspace stands on: saves list the difference to it. Absent if it has none. */
    readonly base?: string | undefined;
  };
  /** What the base's set-up depends on, if this sandbox has what it made; absent if it has not, or there was none. */
  readonly baseSetUp?: BaseSetUp | undefined;
  /** True if /workspace was empty when the sandbox was opened. */
  readonly empty: boolean;
  /** What the sandbox can reach, measured when this worker opened it. */
  readonly network: NetworkFacts;
  /** Isolation checks that failed, one line each: possible only if `guard` is `best-effort`. */
  readonly gaps?: readonly string[];
  /** Forbidden private addresses that commands tried to reach in the last `withinMs`. Absent if nothing is refused. */
  readonly refused?: (
    withinMs: number,
  ) => Promise<readonly { readonly address: string; readonly port: number }[]>;
  /**
   * Starts a command under the supervisor, or returns the state of the one that was already started with this id.
   * @throws SandboxLost when the sandbox went away.
   */
  start(command: SandboxCommand): Promise<CommandState>;
  /**
   * Sends more input to a command that was started with `more`: at an offset in bytes, or `once` under a name, so that a
   * repeated piece is not added again. Resolves when there is room for the next piece.
   * @returns false if the command has ended, so the rest need not be sent
   */
  feed(
    id: string,
    at: number | { readonly once: string },
    bytes: Uint8Array,
    options: { readonly last: boolean },
  ): Promise<boolean>;
  /** `start` and `wait` in one round trip. Aborting stops the waiting, not the command. */
  run(command: SandboxCommand, options?: WaitOptions): Promise<CommandState>;
  /**
   * The command's state once it has ended, or after `timeoutMs`. Aborting stops the waiting, not the command.
   * `onOutput` is called from time to time with the number of bytes so far.
   */
  wait(id: string, options?: WaitOptions): Promise<CommandState>;
  /**
   * Bytes of a command's kept output, from `offset` in it, at most `maxBytes` (1 MiB a call). If more was written than is
   * kept (`outBytes > outKept`), the missing bytes belong before the last 1 MiB, at `outKept - 1 MiB`.
   */
  read(id: string, stream: OutputStream, offset: number, maxBytes: number): Promise<Uint8Array>;
  /**
   * What there is of a command's terminal once it has settled: silent for `quietMs`, or for `askMs` while a program waits for
   * input; ended; or after `timeoutMs`. Output that it answers with is not new to the next one. Aborting stops the waiting.
   */
  look(id: string, options: LookOptions): Promise<TerminalLook>;
  /** Sets the size of a command's terminal; its programs are told. Idempotent. */
  resize(id: string, size: PtySize): Promise<CommandState>;
  /** Ends the command, its process group and everything it left behind: TERM, then KILL after `graceMs`. */
  kill(id: string, graceMs?: number): Promise<CommandState>;
  /** State of a command, or undefined if no command of this id was ever started in this sandbox. */
  state(id: string): Promise<CommandState | undefined>;
  /** Commands started in this sandbox, oldest first; without our own helpers, whose ids have a dash. */
  list(): Promise<readonly CommandState[]>;
  /** Deletes the kept output of an ended command; its id stays taken. For our own helpers. Never rejects. */
  discard(id: string): Promise<void>;
  readonly files: SandboxFiles;
  /** Only with `network: listed`, or with keys. */
  readonly egress?: SandboxEgress;
  /** Keys that the session names and this worker does not have. */
  readonly lackingKeys?: readonly string[];
}

/** The proxy of a sandbox. Its methods restart a proxy that is gone. */
export interface SandboxEgress {
  /** Replaces the allowed names: host names, and `*.name` for subdomains. Until the first call everything is refused. */
  allow(domains: readonly string[]): Promise<void>;
  /** Requests refused since the last call: each host and reason at most once a minute, with its count. */
  refused(): Promise<readonly RefusedRequests[]>;
  /** What became of keys since the last call: each key, host and end at most once a minute, with its count. */
  keyUses(): Promise<readonly KeyUse[]>;
}

export interface KeyUse {
  readonly what: "used" | "refused";
  readonly key: string;
  readonly host: string;
  /** Of the first request that is counted; empty if there was none. */
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  /** Of a use. */
  readonly status?: number;
  /** How the answer was compressed, so that nothing could be masked in it. */
  readonly unread?: string;
  /** Why a key was not used. */
  readonly reason?: "method" | "path" | "host" | "http2" | "certificate";
  readonly count: number;
}

export interface RefusedRequests {
  readonly host: string;
  readonly port: number;
  readonly reason: string;
  readonly count: number;
}

interface NetworkFacts {
  /**
   * Nothing (`none`); only what the proxy allows (`listed`); only the internet (`internet`); the internet and what
   * `sandbox.allow` opens (`allowed`); or private addresses and the host too (`everything`): see `why`.
   */
  readonly reach: "none" | "listed" | "internet" | "allowed" | "everything";
  readonly why?: string;
  /** How many addresses outside the public internet were tried from the sandbox's network namespace. */
  readonly tried?: number;
  /** Which of those were blocked and which could be reached; each list may be cut. */
  readonly refused?: readonly string[];
  readonly reachable?: readonly string[];
}

/** `turns`: where standard error begins and ends in an `out` with both; see `turnsOf` in command-output.ts. */
export type OutputStream = "out" | "err" | "turns";

export interface SandboxCommand {
  /** Unique within the session: letters, digits, dot; a dash in ids of our own helpers. */
  readonly id: string;
  readonly argv: readonly string[];
  /**
   * The variable in `env` that has the Python program which `argv` runs: the supervisor runs it in a child, without starting an
   * interpreter.
   */
  readonly program?: string;
  /** Inside /workspace; default /workspace. */
  readonly cwd?: string;
  readonly stdin?: Uint8Array;
  /** `stdin` is only the beginning of its input; the rest comes through `feed`. */
  readonly more?: boolean;
  /** Added to the sandbox's fixed environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Ends it after this long. The sandbox enforces this itself, also without a worker. */
  readonly timeoutMs?: number;
  /** Standard error goes into `out`, in order. */
  readonly mergeOutput?: boolean;
  /** With `mergeOutput`: `turns` says which bytes of `out` are standard error, and the order is that of arrival. */
  readonly tellApart?: boolean;
  /** Its three streams are a terminal of this size, which `feed` types into and whose output is `out`. */
  readonly terminal?: PtySize;
  /** It counts among the 20 that may run in the background at once: one more is refused. */
  readonly background?: true;
  /** How much of each stream is kept: its beginning up to this, then the last 1 MiB. Default 64 MiB. */
  readonly maxOutputBytes?: number;
}

export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly onOutput?: (bytes: number) => void;
}

/** In characters. */
export interface PtySize {
  readonly rows: number;
  readonly cols: number;
}

interface LookOptions {
  readonly quietMs: number;
  readonly askMs?: number;
  readonly timeoutMs: number;
  /** The name of the piece that was fed `once` before: then new is what came since, also in a second attempt. */
  readonly once?: string;
  /** What it answers with stays new. */
  readonly isPeek?: true;
  readonly signal?: AbortSignal;
}

export interface TerminalLook {
  readonly state: CommandState;
  /** The newest output, at most 1 MiB, and the place of its first byte in all output. */
  readonly bytes: Uint8Array;
  readonly bytesFrom: number;
  /** The place in all output from which it is new. */
  readonly newFrom: number;
  /** Whether a program waits for input. Undefined: it cannot be found out in this sandbox. */
  readonly waits: boolean | undefined;
  /** Whether the kernel shows what is typed; and whether programs get whole lines, of at most 4,095 bytes. */
  readonly echoes?: boolean;
  readonly takesLines?: boolean;
}

export interface DiskFacts {
  /** As last counted; counting stops above the limit. */
  readonly usedBytes: number;
  /** Part of it that could not be counted, such as deleted files held by a process that cannot be inspected. */
  readonly unseenBytes?: number;
  readonly limitBytes: number;
  /** Free space on the host. */
  readonly freeBytes: number;
}

/** `killed` says why: its timeout, our request, the disk limit, or another signal (out of memory, the command itself). */
export type CommandState = {
  readonly id: string;
  readonly startedAtMs: number;
  /** Bytes the command wrote, kept or not. */
  readonly outBytes: number;
  readonly errBytes: number;
  /** Bytes that `read` can return, from offset 0. */
  readonly outKept: number;
  readonly errKept: number;
  /** Sizes of `turns`; absent if the streams of `out` cannot be told apart. */
  readonly turnsBytes?: number;
  readonly turnsKept?: number;
  /**
   * The terminal's size now, or at its end, and how much that was typed it could not take yet. Absent if it has none, or the sandbox
   * was restarted since.
   */
  readonly terminal?: PtySize & { readonly unreadBytes: number };
  /** Set if the disk limit ended it, or was reached when it began, so that its files could not grow. */
  readonly disk?: DiskFacts;
} & (
  | { readonly kind: "running"; readonly pid: number }
  | { readonly kind: "exited"; readonly exitCode: number; readonly durationMs: number }
  | {
      readonly kind: "killed";
      readonly by: "timeout" | "request" | "disk" | "signal";
      readonly signal: string;
      readonly durationMs: number;
    }
  /** It could not be started: no such program, no such folder, no free process. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The sandbox was restarted while it ran: its outcome is unknown. */
  | { readonly kind: "lost" }
);

/** File operations, each in a process of uid 1000 in the sandbox. No path leaves /workspace, not even through symlinks. */
export interface SandboxFiles {
  /** @returns at most `maxBytes` from `offset`, the file's full size and a hash of the whole (hex sha256, up to 64 MiB). */
  read(
    path: string,
    options?: { readonly offset?: number; readonly maxBytes?: number },
  ): Promise<FileAnswer<FileContent>>;
  /**
   * Writes the whole file atomically (temporary file, rename), makes folders as needed, keeps an existing file's mode.
   * With `ifHash`: only if the file still has that hash (`null`: only if there is no file).
   */
  write(
    path: string,
    bytes: Uint8Array,
    options?: { readonly ifHash?: string | null; readonly mode?: number },
  ): Promise<FileAnswer<{ readonly created: boolean; readonly hash: string }>>;
  /** Removes a file, or a link itself. With `ifHash`: only if the file at the path still has that hash. */
  remove(path: string, options?: { readonly ifHash?: string }): Promise<FileAnswer<Record<never, never>>>;
  list(
    path: string,
    options?: { readonly maxEntries?: number },
  ): Promise<FileAnswer<{ readonly entries: readonly FileEntry[]; readonly total: number }>>;
  stat(path: string): Promise<FileAnswer<FileEntry>>;
}

interface FileContent {
  readonly bytes: Uint8Array;
  readonly size: number;
  readonly hash: string;
  /** Permission bits. */
  readonly mode: number;
}

export interface FileEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
  readonly size: number;
  /** Where a link points. */
  readonly target?: string;
}

/** A refusal is a value: its message names the path and is written for the model. */
export type FileAnswer<T> =
  | ({ readonly ok: true } & T)
  | {
      readonly ok: false;
      readonly reason:
        | "not-found"
        | "outside"
        | "not-a-file"
        | "not-a-folder"
        | "denied"
        | "changed"
        | "exists"
        | "no-space"
        | "failed";
      readonly message: string;
    };

/**
 * The sandbox went away while it was used: removed, killed, or its engine restarted. Its processes have ended, and their
 * outcome is unknown; the files are on the volume unless that is gone too. `open` starts a sandbox again.
 */
export class SandboxLost extends Error {
  override readonly name = "SandboxLost";
}

/** What a set-up depends on that was made with a base: files that name packages, or all, since it made more than their folders. */
export type BaseSetUp = "packages" | "files";
