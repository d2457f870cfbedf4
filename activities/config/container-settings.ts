/** Another person's container that a session works in. Never from a configuration file: a person names it. */
import { z } from "zod";

export const containerSchema = z.object({
  name: z
    .string()
    .max(200)
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, "the name or id of a container"),
  /** The engine's id of the one that was meant, if the client could see it: another of its name is not taken. */
  id: z.string().optional(),
  /** The folder to work in, absolute. */
  folder: z.string().regex(/^\/(?!$)[^\0]*[^\0/]$|^\/[^\0/]$/, "an absolute folder below /"),
});
export type AttachedContainer = z.infer<typeof containerSchema>;

/** What the tools and their descriptions call the folder to work in. */
const WORKSPACE = "/workspace";

/** A text that speaks of the workspace, for a session that works elsewhere. */
export const inFolder = (text: string, folder: string): string => text.replaceAll(WORKSPACE, folder);
