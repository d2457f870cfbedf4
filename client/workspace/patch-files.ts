/** Splits a patch by file, and counts the lines added to and removed from each. Pure. */

export interface PatchFile {
  readonly path: string;
  /** Number of lines; null for a binary file. */
  readonly added: number | null;
  readonly removed: number | null;
  readonly text: string;
}

/** Content lines begin with a space, `+` or `-`, so only a header begins with `diff --git`. */
export function patchFiles(patch: string): PatchFile[] {
  return patch
    .split(/^(?=diff --git )/m)
    .filter((text) => text !== "")
    .map((text) => {
      const hunks = text.slice(text.search(/^@@ /m));
      const isBinary = /^(?:GIT binary patch|Binary files )/m.test(text) && !/^@@ /m.test(text);
      const hasHunks = /^@@ /m.test(text);
      const count = (sign: RegExp) => {
        if (isBinary) return null;
        return hasHunks ? (hunks.match(sign)?.length ?? 0) : 0;
      };
      return {
        path: pathOf(text),
        added: count(/^\+/gm),
        removed: count(/^-/gm),
        text,
      };
    });
}

/** Git's header: `/dev/null` means no file; a name with special characters is quoted. */
function pathOf(text: string): string {
  const named = (sign: string) =>
    new RegExp(`^${sign} (?!/dev/null)"?[ab]/(.*?)"?\\t?$`, "m").exec(text)?.[1];
  const header = /^diff --git "?a\/(.*?)"? "?b\//.exec(text)?.[1];
  return named(String.raw`\+\+\+`) ?? named("---") ?? header ?? "?";
}
