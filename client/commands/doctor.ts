/** `longhaul doctor`: what is found, what is missing, how to fix it, and where each setting comes from. */
import type { Command } from "commander";
import type { Diagnosis } from "../setup/doctor.ts";
import { checkLocks, checkStores } from "../connect/stores-check.ts";
import { describeSettings } from "../config/config.ts";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import type { Output, Style } from "../console/output.ts";
import { present } from "../console/format.ts";

export function doctorCommand(command: Command, output: Output) {
  command.option("--config <file>", "configuration file").option("--json", "one JSON document");
  return async (flags: { readonly config?: string; readonly json?: boolean }): Promise<ExitCode> => {
    const described = describeSettings(flags);
    const { run, sandbox } = described;
    const [
      { diagnose },
      { localServerChecks, modelServerCheck, identityChecks },
      { mcpChecks },
      { keyChecks },
    ] = await Promise.all([
      import("../setup/doctor.ts"),
      import("../setup/model-check.ts"),
      import("../setup/mcp-servers.ts"),
      import("../setup/key-check.ts"),
    ]);
    const [{ checks: found, settings }, server, locals, identities, keys] = await Promise.all([
      diagnose({ sandbox, model: described.choice }),
      run && modelServerCheck(run),
      described.choice?.hints === undefined ? [] : localServerChecks(),
      identityChecks(),
      sandbox === undefined ? [] : keyChecks(sandbox),
    ]);
    const named = (name: string) => found.find((check) => check.name === name)?.ok === true;
    const stores =
      named("Postgres") && named("Temporal") ? { name: "stores", ...(await checkStores()) } : undefined;
    const locks = named("Postgres") ? { name: "locks", ...(await checkLocks()) } : undefined;
    const mcpServers = run?.mcpServers ?? {};
    const servers = sandbox === undefined ? [] : await mcpChecks({ mcpServers, sandbox });
    const checks = present(...found, stores, locks, server, ...locals, ...identities, ...keys, ...servers);
    const others = settings.filter(({ name }) => !described.settings.some((other) => other.name === name));
    const diagnosis = { checks: [...checks, described.check], settings: [...others, ...described.settings] };
    if (flags.json === true) output.json(diagnosis, 2);
    else output.result(`${output.hints(doctorText(diagnosis, output.style))}\n`);
    if (!described.check.ok) return exitCodes.usage;
    return checks.every(({ ok }) => ok) ? exitCodes.completed : exitCodes.missing;
  };
}

export function doctorText({ checks, settings }: Diagnosis, style: Style): string {
  const width = Math.max(
    ...checks.map(({ name }) => name.length),
    ...settings.map(({ name }) => name.length),
  );
  return [
    ...checks.flatMap(({ name, ok, warning, found, fix }) =>
      present(
        `${markOf(ok, warning, style)} ${name.padEnd(width)}  ${found}`,
        fix !== undefined && `  ${"".padEnd(width)}  ${style("yellow", `→ ${fix}`)}`,
      ),
    ),
    "",
    ...settings.map(
      ({ name, value, source }) => `  ${name.padEnd(width)}  ${value}  ${style("dim", `(${source})`)}`,
    ),
  ].join("\n");
}

function markOf(ok: boolean, warning: boolean | undefined, style: Style): string {
  if (!ok) return style("red", "✗");
  return warning ? style("yellow", "!") : style("green", "✓");
}
