/** `longhaul doctor`: what is found, what is missing, how to fix it, and where each setting comes from. */
import type { Command } from "commander";
import type { Diagnosis } from "../setup/doctor.ts";
import { describeSettings, readSettings } from "../config/config.ts";
import { exitCodes, type ExitCode } from "../console/errors.ts";
import type { Output, Style } from "../console/output.ts";

export function doctorCommand(command: Command, output: Output) {
  command.option("--config <file>", "configuration file").option("--json", "one JSON document");
  return async (flags: { readonly config?: string; readonly json?: boolean }): Promise<ExitCode> => {
    const own = describeSettings(flags);
    const { diagnose } = await import("../setup/doctor.ts");
    const { modelServerCheck } = await import("../setup/model-check.ts");
    const [{ checks: found, settings }, server] = await Promise.all([
      diagnose({ sandbox: own.sandbox, model: own.choice }),
      own.run === undefined ? undefined : modelServerCheck(own.run, readSettings(flags).environment),
    ]);
    const { mcpServers } = own.run ?? {};
    const servers =
      mcpServers === undefined || own.sandbox === undefined
        ? []
        : await (
            await import("../setup/mcp-check.ts")
          ).mcpChecks({ mcpServers, sandbox: own.sandbox }, readSettings(flags).environment);
    const checks = [...found, ...(server === undefined ? [] : [server]), ...servers];
    const diagnosis = {
      checks: [...checks, own.check],
      settings: [
        ...settings.filter(({ name }) => !own.settings.some((other) => other.name === name)),
        ...own.settings,
      ],
    };
    if (flags.json === true) output.json(diagnosis, 2);
    else output.result(`${output.hints(doctorText(diagnosis, output.style))}\n`);
    if (!own.check.ok) return exitCodes.usage;
    return checks.every(({ ok }) => ok) ? exitCodes.completed : exitCodes.missing;
  };
}

export function doctorText({ checks, settings }: Diagnosis, style: Style): string {
  const width = Math.max(
    ...checks.map(({ name }) => name.length),
    ...settings.map(({ name }) => name.length),
  );
  return [
    ...checks.flatMap(({ name, ok, warning, found, fix }) => [
      `${markOf(ok, warning, style)} ${name.padEnd(width)}  ${found}`,
      ...(fix === undefined ? [] : [`  ${"".padEnd(width)}  ${style("yellow", `→ ${fix}`)}`]),
    ]),
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
