/** `longhaul warm`: bases of a repository's default branch, made for everyone before a session needs them. */
import type { Command } from "commander";
import { repositoryAddress } from "../../activities/config/git-settings.ts";
import { bytes, duration, plural } from "../../activities/text/format.ts";
import { exitCodes, usageError, type ExitCode } from "../console/errors.ts";
import { ago, harmlessLine, shellWord } from "../console/format.ts";
import type { Output } from "../console/output.ts";
import { prepareStart } from "../sessions/prepare-start.ts";
import type { WarmDocument } from "../warm/warm-repositories.ts";

interface WarmFlags {
  readonly every?: number;
  readonly list?: boolean;
  readonly off?: boolean;
  readonly config?: string;
  readonly setup: boolean;
  readonly json?: boolean;
}

const UNITS_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** @returns ms @throws ClientError (usage) */
function parseInterval(text: string): number {
  const [, count = "", unit = ""] = /^([1-9]\d{0,3})([mhd])$/.exec(text) ?? [];
  const unitMs = UNITS_MS[unit];
  if (unitMs === undefined)
    throw usageError(`--every: expected a time such as 30m, 6h or 1d, not ${JSON.stringify(text)}.`);
  return Number(count) * unitMs;
}

export function warmCommand(command: Command, output: Output) {
  command
    .argument("[url]", "the repository's address, as of --repo")
    .option("--every <time>", "again at each interval, such as 30m, 6h or 1d, on a schedule", parseInterval)
    .option("--list", "what is kept warm: repository, commit, age, size, hosts, last use")
    .option("--off", "keep the repository warm no more")
    .option("--config <file>", "configuration file (default: LONGHAUL_CONFIG or ./longhaul.yaml)")
    .option("--no-setup", "use running services and workers; start none")
    .option("--json", "one JSON document");
  return async (url: string | undefined, flags: WarmFlags): Promise<ExitCode> => {
    if (flags.list === true) return list(flags, output);
    if (url === undefined)
      throw usageError("Name the repository: longhaul warm URL", "What is kept warm: longhaul warm --list");
    if (flags.off === true) return end(url, output);
    return begin(url, flags, output);
  };
}

async function begin(url: string, flags: WarmFlags, output: Output): Promise<ExitCode> {
  const { every, ...startFlags } = flags;
  const { start } = await prepareStart(
    ["warm"],
    { ...startFlags, repo: url, push: "never", pr: "none" },
    output.note,
  );
  const { config } = start;
  const address = config.repository?.url ?? url;
  if (config.repository?.submodules === true)
    throw usageError("git.submodules is set: sessions with submodules use no base of the team.");
  if (config.sandbox.setup.scope !== "team")
    output.note(
      "Sessions use these bases only if they have sandbox.setup.scope: team, and otherwise the same settings.\n",
    );
  const [{ withPreparedServices }, warm] = await modules();
  const say = (line: string) => output.note(`${line}\n`);
  return withPreparedServices({ ...flags, image: config.sandbox.image }, say, async (services) => {
    if (every !== undefined) {
      await warm.warmEvery(services, address, { config, everyMs: every });
      say(`${address} is kept warm, every ${duration(every)}; the first bases are being made.`);
      say("See them: longhaul warm --list");
      say(`End it: longhaul warm ${shellWord(address)} --off`);
      return exitCodes.completed;
    }
    const document = await warm.warmNow(services, address, config);
    show([document], flags, output);
    const isMade = document.hosts.length > 0 && document.hosts.every(({ failure }) => failure === null);
    return isMade ? exitCodes.completed : exitCodes.failed;
  });
}

async function list(flags: WarmFlags, output: Output): Promise<ExitCode> {
  const [{ withServices }, { readWarms }] = await modules();
  const documents = await withServices(readWarms);
  show(documents, flags, output);
  if (documents.length === 0 && flags.json !== true)
    output.note("No repository is kept warm. Make the bases of one: longhaul warm URL --every 30m\n");
  return exitCodes.completed;
}

async function end(url: string, output: Output): Promise<ExitCode> {
  const address = repositoryAddress(url);
  if ("wrong" in address) throw usageError(address.wrong);
  const [{ withServices }, { warmOff }] = await modules();
  await withServices((services) => warmOff(services, address.url));
  output.note(`${address.url} is kept warm no more. Bases go a week after their last session.\n`);
  return exitCodes.completed;
}

function show(documents: readonly WarmDocument[], { json }: WarmFlags, output: Output): void {
  if (json === true) output.json(documents, 2);
  else if (documents.length > 0) output.result(`${documents.map(warmText).join("\n")}\n`);
}

function warmText({ repository, everyMs, next, hosts }: WarmDocument): string {
  const now = new Date();
  const since = (time: string | null): string => (time === null ? "never" : ago(new Date(time), now));
  const often = everyMs === null ? "when asked" : `every ${duration(everyMs)}, next ${next ?? "–"}`;
  const lines = hosts.map(({ host, commit, files, bytes: size, madeAt, checkedAt, usedAt, failure }) => {
    const made =
      commit === null
        ? "no base"
        : `${commit.slice(0, 12)} · made ${since(madeAt)} · ${plural(files ?? 0, "file")}, ${bytes(size ?? 0)} · last used ${since(usedAt)}`;
    const failed = failure === null ? "" : `\n    ${since(checkedAt)} failed: ${harmlessLine(failure, 300)}`;
    return `  ${host}: ${made}${failed}`;
  });
  return [`${repository}  ${often}`, ...lines].join("\n");
}

const modules = () =>
  Promise.all([import("../sessions/with-session.ts"), import("../warm/warm-repositories.ts")] as const);
