/** A Dockerfile of the workspace from which a session's sandbox is built, as a devcontainer.json names one. */
import { z } from "zod";

/** A path below the workspace: without `..`, and not absolute. */
const workspacePath = z
  .string()
  .max(500)
  .regex(/^(?!\/)(?!(.*\/)?\.\.(\/|$)).+$/, "a path of the workspace such as .devcontainer/Dockerfile");

export const buildSettingsSchema = z.strictObject({
  dockerfile: workspacePath,
  /** The folder that COPY and ADD read from. */
  context: workspacePath.default("."),
  /** Values of the Dockerfile's ARGs. */
  args: z.record(z.string().regex(/^[A-Za-z_]\w*$/, "the name of an ARG"), z.string()).default({}),
  /** The stage to build; default: the last. */
  target: z.string().min(1).max(200).optional(),
});
export type ImageBuild = z.infer<typeof buildSettingsSchema>;

/** The build as a person would type it; shown in events. */
export const buildCommand = ({ dockerfile, context, target }: ImageBuild): string =>
  `docker build -f ${dockerfile}${target === undefined ? "" : ` --target ${target}`} ${context}`;
