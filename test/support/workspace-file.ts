/** A file of a workspace, as it is saved. */
export const file = (path: string, content: string | Uint8Array = "x\n", mode = 0o644) =>
  ({ kind: "file", path, mode, bytes: Buffer.from(content) }) as const;
