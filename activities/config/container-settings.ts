/** Another person's container in which a session works. Never from a configuration file: a person names it. */
import { z } from "zod";

export const containerSchema = z.object({
  name: z
    .string()
    .max(200)
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, "the name or id of a container"),
  /** The engine's id of the intended container, if the client could see it: another container of the same name is refused. */
  id: z.string().optional(),
  /** The folder to work in, absolute. */
  folder: z.string().regex(/^\/(?!$)[^\0]*[^\0/]$|^\/[^\0/]$/, "an absolute folder below /"),
});
export type AttachedContainer = z.infer<typeof containerSchema>;

/** The name of the working folder in the tools and their descriptions. */
export const WORKSPACE = "/workspace";

/** A text about the workspace, adapted to a session that works elsewhere. */
export const inFolder = (text: string, folder: string): string => text.replaceAll(WORKSPACE, folder);
