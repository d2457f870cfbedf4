/** Events of a session's sandbox in words: its life, its set-up, and what it may reach. */
import type { EventData, EventType } from "../../activities/store/event.ts";
import { bytes as sizeText, duration, plural } from "../../activities/text/format.ts";
import { harmlessLine, listNames, present } from "../console/format.ts";
import { notice, person, quiet, warn, type Describe, type Sentence } from "./sentence.ts";

const COMMAND_CHARS = 120;

type SandboxEvent = Extract<
  EventType,
  `${"base" | "egress" | "host" | "process" | "sandbox" | "service" | "setup" | "web"}:${string}`
>;

export const SANDBOX_SENTENCES: { readonly [Type in SandboxEvent]: Describe<Type> } = {
  "sandbox:created": (data) => created(data),
  "sandbox:adopted": () => [],
  "sandbox:lost": ({ message }) => [warn(`sandbox lost: ${harmlessLine(message, 200)}`)],
  "sandbox:saved": () => [],
  "sandbox:left-out": ({ files }) => {
    const names = files.map(({ path }) => harmlessLine(path, 80)).join(", ");
    return [warn(`not saved in their present state (too large, too many or not readable): ${names}`)];
  },
  "sandbox:saves-full": ({ maxBytes }) => [
    warn(
      `saved files take ${Math.round(maxBytes / 2 ** 20)} MiB, all that the session may store: from now on only the newest are kept`,
    ),
  ],
  "sandbox:parked": ({ until }) => [
    quiet(
      until === undefined
        ? "the sandbox is saved and removed until the answer comes"
        : `the sandbox is saved and stopped; it is kept until ${harmlessLine(until.slice(0, 16), 20)}`,
    ),
  ],
  "sandbox:removed": ({ why }) =>
    why === undefined ? [] : [quiet(`the stopped sandbox was removed: ${harmlessLine(why, 200)}`)],
  "host:evicted": ({ host, took, name, bytes, limitBytes, limitCount }) => [
    quiet(
      `${took === "base" ? `the base of ${harmlessLine(name.slice(0, 12), 40)}` : "the stopped sandbox"} (${sizeText(bytes)}) was removed from ${harmlessLine(host, 60)}, which keeps at most ${limitCount === undefined ? sizeText(limitBytes) : `${limitCount} of them`}`,
    ),
  ],
  "sandbox:left": () => [],
  "sandbox:not-closed": ({ message }) => [warn(harmlessLine(message, 300))],
  "service:started": ({ name, image, ms }) => [
    quiet(`service ${harmlessLine(name, 80)} started (${harmlessLine(image, 80)}) in ${duration(ms)}`),
  ],
  "service:healthy": ({ name, ms }) => [
    quiet(`service ${harmlessLine(name, 80)} healthy after ${duration(ms)}`),
  ],
  "service:failed": ({ name, why, log }) => [
    { ...warn(`service ${harmlessLine(name, 80)} failed: ${harmlessLine(why, 200)}`), detail: log },
  ],
  "service:lost": ({ name, why, log = "" }) => [
    { ...warn(`service ${harmlessLine(name, 80)}: ${harmlessLine(why, 200)}`), detail: log },
  ],
  "process:ended": ({ id, about, how, exitCode, lines }) => [
    {
      ...(exitCode === 0 ? quiet : warn)(
        `${id}${about === "" ? "" : ` (${harmlessLine(about, COMMAND_CHARS)})`} ${harmlessLine(how, 200)}`,
      ),
      detail: lines,
    },
  ],
  "setup:started": ({ commands }) => [
    quiet(`setting up: ${commands.map((command) => harmlessLine(command, COMMAND_CHARS)).join(" · ")}`),
  ],
  "setup:built": ({ kept, durationMs }) => [
    quiet(
      kept === "taken"
        ? "the Dockerfile's image already exists"
        : `built the Dockerfile's image in ${duration(durationMs)}`,
    ),
  ],
  "setup:ended": ({ status, durationMs, output, command = "", how = "", kept, notKept }) => {
    if (status === "failed") {
      const where = `${harmlessLine(command, COMMAND_CHARS)} (${harmlessLine(how, 200)})`;
      return [{ ...warn(`set-up failed at ${where}`), detail: output }];
    }
    const from = kept === "taken" ? ", from the kept set-up" : "";
    const notKeptText = notKept === undefined ? "" : ` (not kept: ${harmlessLine(notKept, 200)})`;
    return [quiet(`set up in ${duration(durationMs)}${from}${notKeptText}`)];
  },
  "egress:denied": ({ host, port, reason, count, allow }) => {
    const times = count > 1 ? `, ${count} times` : "";
    const byAddress =
      reason === "blocked-private-address" ? "; sandbox.allow opens such an address, in a new session" : "";
    const fix = allow === undefined ? byAddress : `; to allow it: ${harmlessLine(allow, 400)}`;
    return [
      warn(
        `network: ${harmlessLine(host, 253)}:${port} was refused (${harmlessLine(reason, 60)}${times})${fix}`,
      ),
    ];
  },
  "egress:key-used": ({ key, host, method, path, status, unread, count }) => {
    const more = count > 1 ? ` and ${plural(count - 1, "more request")}` : "";
    const hidden = unread === undefined ? "" : `; its answer was compressed (${unread}), so not searched`;
    return [quiet(`key ${key}: ${method} ${host}${path} → ${status}${more}${hidden}`)];
  },
  "egress:key-refused": ({ key, host, method, path, reason, count }) => {
    if (reason === "removed")
      return [warn(`key ${key}: the worker has it no more; the sandbox goes on without it`)];
    return [
      warn(`key ${key}: not used for ${method} ${host}${path} (${reason}, ${plural(count, "request")})`),
    ];
  },
  "web:fetched": ({ host, bytes, status }) => [
    quiet(`read a page of ${harmlessLine(host, 253)} (status ${status}, ${sizeText(bytes)})`),
  ],
  "egress:allowed": ({ domain, by }) => [
    notice(`network: ${harmlessLine(domain, 253)} is allowed (${person(by)})`),
  ],
  "base:making": () => [quiet("checking the repository out, for this session and later ones")],
  "base:made": ({ files, bytes, setUpMs, ms }) => [
    quiet(
      `checked out ${plural(files, "file")}, ${Math.ceil(bytes / 2 ** 20)} MiB,${setUpMs === undefined ? "" : " and set up,"} in ${Math.ceil(ms / 1_000)} s`,
    ),
  ],
  "base:used": ({ notSetUp }) => (notSetUp === undefined ? [] : [warn(harmlessLine(notSetUp, 300))]),
  "base:none": ({ why, chosen, ms }) => {
    const reason = harmlessLine(why, 200);
    const because = chosen ? reason : `this engine cannot mount an overlay (${reason})`;
    return [
      (chosen ? quiet : warn)(
        `The workspace is a copy, not a layer: ${because}. Opening took ${Math.ceil(ms / 1_000)} s and saves look at every file.`,
      ),
    ];
  },
};

function created({ workspace, layers, network, allow, gaps }: EventData["sandbox:created"]): Sentence[] {
  const copied = workspace === "restored" ? ", files restored" : `, ${workspace}`;
  const filesText = layers === "overlay" ? " on the repository's checkout" : copied;
  const open = network?.reach === "allowed" ? undefined : network?.why;
  return present(
    quiet(`sandbox created${workspace === "empty" ? "" : filesText}`),
    allow && quiet(`sandbox.allow opens ${listNames(allow)}`),
    gaps && warn(`the sandbox is not isolated as configured: ${harmlessLine(gaps.join("; "), 200)}`),
    gaps === undefined &&
      open !== undefined &&
      warn(`the sandbox can reach private addresses: ${harmlessLine(open, 200)}`),
  );
}
