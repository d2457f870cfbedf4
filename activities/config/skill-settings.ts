/** Skills: where the project keeps its own, and those that the person adds. */
import { z } from "zod";

/** Where the person's skills are in a sandbox: files owned by root, which the tools can read. */
export const SHARED_SKILLS_FOLDER = "/etc/longhaul/skills";

/** A folder of the workspace. */
const folderPath = z
  .string()
  .regex(/^(?!.*(^|\/)\.\.(\/|$))[\w.][\w./-]{0,199}$/, "a folder of the workspace such as .agents/skills");

export const skillsSchema = z.strictObject({
  enabled: z.boolean().default(true),
  /** Folders of the workspace with one folder per skill. Source: agentskills.io. */
  paths: z.array(folderPath).default([".agents/skills"]),
  /** Folders of the person's machine, with one folder a skill too: copied into each sandbox, outside the workspace. */
  folders: z.array(z.string().min(1)).default([]),
});

/** A path as the client finds it: root writes these files into the sandbox. */
const sharedPath = z
  .string()
  .regex(/^((?!\.)[\w.-]{1,100}\/){1,5}(?!\.)[\w.-]{1,100}$/, "a path below the folder");

/** The settings stored with a session: the client has read those folders at its start. */
export const sessionSkillsSchema = skillsSchema.partial({ folders: true }).extend({
  /** Path below the skills' folder, such as `pdf/SKILL.md`. */
  shared: z.array(z.object({ path: sharedPath, text: z.string() })).optional(),
});
export type SessionSkills = z.infer<typeof sessionSkillsSchema>;

/** Files owned by the sandbox's root, by path. */
export const sharedSkillFiles = (skills: SessionSkills | undefined): Record<string, string> =>
  skills?.enabled === false
    ? {}
    : Object.fromEntries(
        (skills?.shared ?? []).map(({ path, text }) => [`${SHARED_SKILLS_FOLDER}/${path}`, text]),
      );
