/** Commands that prepare a project in each new sandbox, before the agent's first step. */
import { z } from "zod";
import { timerMs } from "./durations.ts";
import type { ImageBuild } from "./build-settings.ts";

/** Source: ours, a cold installation of a large project with a build. */
const DEFAULT_TIMEOUT_MS = 1_200_000;
const MAX_COMMANDS = 50;
const MAX_COMMAND_CHARS = 10_000;

const commands = z.array(z.string().min(1).max(MAX_COMMAND_CHARS)).max(MAX_COMMANDS);

const setupSchema = z.strictObject({
  /** By `bash -c` in /workspace, one after the other; the first that fails ends it. */
  commands: commands.default([]),
  /** A command that fails ends the run; with `optional` the model gets a notice, and works without. */
  optional: z.boolean().default(false),
  /** Whether what they made is kept on the host, for the person's next sessions on this project. */
  keep: z.boolean().default(true),
  /** Of each command, in ms. */
  timeout: timerMs.default(DEFAULT_TIMEOUT_MS),
});

/** As it is written: the commands alone, or with what else there is to say. */
export const setupSettingsSchema = z.union([
  commands.transform((given) => setupSchema.parse({ commands: given })),
  setupSchema,
]);

export type Setup = z.infer<typeof setupSchema>;

/** Another person's container is used unchanged: nothing is built for it. */
export const buildOf = (sandbox: {
  readonly build?: ImageBuild | undefined;
  readonly container?: unknown;
}): ImageBuild | undefined => (sandbox.container === undefined ? sandbox.build : undefined);

/** Undefined if there is nothing to do, also for sessions from before there was a set-up. */
export function setupOf(sandbox: {
  readonly setup?: Setup;
  readonly build?: ImageBuild | undefined;
  readonly container?: unknown;
}): Setup | undefined {
  const { setup } = sandbox;
  const build = buildOf(sandbox);
  return setup === undefined || (setup.commands.length === 0 && build === undefined) ? undefined : setup;
}

/** Longest that all commands and the build of its image may take, in ms. */
export const setupTimeoutOf = (
  { commands, timeout }: Setup,
  { build }: { readonly build?: ImageBuild | undefined },
): number => (commands.length + (build === undefined ? 0 : 1)) * timeout;
