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
  /** Run by `bash -c` in /workspace, one after the other; the first failure ends the set-up. */
  commands: commands.default([]),
  /** A failed command ends the run; with `optional` the model gets a notice and continues without it. */
  optional: z.boolean().default(false),
  /** Whether the result is kept on the host, for the person's next sessions on this project. */
  keep: z.boolean().default(true),
  /** Timeout of each command, in ms. */
  timeout: timerMs.default(DEFAULT_TIMEOUT_MS),
});

/** The two written forms: only the commands, or an object with further settings. */
export const setupSettingsSchema = z.union([
  commands.transform((given) => setupSchema.parse({ commands: given })),
  setupSchema,
]);

export type Setup = z.infer<typeof setupSchema>;

/** Another person's container is used unchanged: no image is built. */
export const buildOf = (sandbox: {
  readonly build?: ImageBuild | undefined;
  readonly container?: unknown;
}): ImageBuild | undefined => (sandbox.container === undefined ? sandbox.build : undefined);

/** Undefined if there is nothing to set up, also for sessions older than set-ups. */
export function setupOf(sandbox: {
  readonly setup?: Setup;
  readonly build?: ImageBuild | undefined;
  readonly container?: unknown;
}): Setup | undefined {
  const { setup } = sandbox;
  const build = buildOf(sandbox);
  return setup === undefined || (setup.commands.length === 0 && build === undefined) ? undefined : setup;
}

/** Longest that all commands and the image's build may take, in ms. */
export const setupTimeoutOf = (
  { commands, timeout }: Setup,
  { build }: { readonly build?: ImageBuild | undefined },
): number => (commands.length + (build === undefined ? 0 : 1)) * timeout;
