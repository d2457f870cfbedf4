/** Values that settings have in common: times in ms, sizes in MiB or GiB, images, paths, variables, addresses and headers. */
import { z } from "zod";

/**
 * 24 days: Node fires a timer of more than 2³¹ − 1 ms (20 hours more) at once, and a timer behind another waits
 * somewhat longer. Source: Node's documentation of `setTimeout`.
 */
const MAX_TIMER_MS = 24 * 86_400_000;
/** Chosen: a year. */
export const MAX_WAIT_MS = 365 * 86_400_000;

const ms = z.number().int().positive();

/** For times that a process waits with its own timer. */
export const timerMs = ms.max(MAX_TIMER_MS, `at most ${MAX_TIMER_MS} ms, 24 days`);
/** For times that a workflow waits. */
export const waitMs = ms.max(MAX_WAIT_MS, `at most ${MAX_WAIT_MS} ms, a year`);

const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** `90s` in ms. */
const parseTime = (text: string): number =>
  Number(text.slice(0, -1)) * UNITS_MS[text.slice(-1) as keyof typeof UNITS_MS];

/** A pause of at most a day: `90s`, `2m`, `1h`, or a number of ms. In ms. */
export const pauseMs = z.union([
  z.number().int().min(0).max(UNITS_MS.d),
  z
    .string()
    .regex(/^[1-9]\d{0,4}[smh]$/, "a time such as 90s, 2m or 1h, or a number of ms")
    .transform(parseTime)
    .pipe(z.number().max(UNITS_MS.d, "at most a day")),
]);

/** How long something is kept: `30m`, `12h`, `3d`; 0 = not at all. In ms. */
export const keepMs = z.union([
  z.literal(0),
  z
    .string()
    .regex(/^[1-9]\d{0,3}[mhd]$/, "a time such as 30m, 12h or 3d, or 0")
    .transform(parseTime),
  // As a session's row has it.
  z.number().int().min(60_000).max(MAX_WAIT_MS),
]);

/** More digits would not fit into the 64 bits of the engine and the kernel. */
export const sizeSchema = z.string().regex(/^\d{1,7}(m|g)$/, "a number with m or g, such as 2g");

export const megabytes = (size: string): number => Number.parseInt(size) * (size.endsWith("g") ? 1_024 : 1);

export const parseBytes = (size: string): number => megabytes(size) * 2 ** 20;

/** How much of a disk something may take: a share of it, or a size in bytes. */
export type DiskLimit = { readonly share: number } | { readonly bytes: number };

/** `20%`, or a size such as `50g`. */
export const diskLimitSchema = z
  .string()
  .regex(/^(\d{1,7}[mg]|(\d{1,2}(\.\d)?|100)%)$/, "a share of the disk such as 20%, or a size such as 50g")
  .transform((text): DiskLimit =>
    text.endsWith("%") ? { share: Number.parseFloat(text) / 100 } : { bytes: parseBytes(text) },
  );

/** Ports of mail, terminals and the like: no request is sent to them. Source: the Fetch Standard, port blocking. */
const BLOCKED_PORTS = new Set(
  (
    "0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 " +
    "139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 " +
    "2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080"
  ).split(" "),
);

export const httpAddress = z
  .url({ protocol: /^https?$/ })
  .refine((text) => {
    const { username, password } = URL.parse(text) ?? {};
    return !username && !password;
  }, "an address without a name or password in it: those belong into a header")
  .refine(
    (text) => !BLOCKED_PORTS.has(URL.parse(text)?.port ?? ""),
    "an address with another port: no request is sent to this one",
  );

/** Headers that HTTP itself sets: undici does not accept them. */
const TAKEN = ["connection", "content-length", "expect", "keep-alive", "transfer-encoding", "upgrade"];

/** Source: RFC 9110, 5.1 (a token). */
export const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "the name of a header")
  .refine((name) => !TAKEN.includes(name.toLowerCase()), "a header that is not set by HTTP itself");

/** Source: RFC 9110, 5.5. */
export const headersSchema = z.record(
  headerName,
  z
    .string()
    .regex(/^[\t -~\u0080-\u00ff]*$/, "a header's value: one line, without characters beyond Latin-1"),
);

/** A path below the workspace: without `..`, and not absolute. */
export const pathInWorkspace = z
  .string()
  .max(500)
  .regex(/^(?!\/)(?!(.*\/)?\.\.(\/|$)).+$/, "a path of the workspace such as .devcontainer/Dockerfile");

/** Names that the shell accepts; the supervisor's own are reserved. */
export const variables = z.record(
  z.string().regex(/^(?!LONGHAUL_)[A-Za-z_][A-Za-z0-9_]*$/, "the name of a variable"),
  z.string(),
);

/** Host and port, path, tag and digest; or an id. Source: the grammar of the distribution project's `reference` package. */
const IMAGE_NAME =
  /^([A-Za-z0-9][A-Za-z0-9.-]*(:\d+)?\/)?[a-z0-9]+([._-]+[a-z0-9]+)*(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$/;
export const imageSchema = z
  .string()
  .max(500)
  .regex(IMAGE_NAME, "the name of an image, such as node:24 or registry.example.com/tools/rust:1.90");
