/** Whether a place of a text is within a fence or backticks, so that what is there is quoted. Pure. */
export function isInCode(text: string, at: number): boolean {
  const before = text.slice(0, at);
  if ((before.match(/^ {0,3}(?:```|~~~)/gm) ?? []).length % 2 === 1) return true;
  const line = before.slice(before.lastIndexOf("\n") + 1);
  return (line.match(/`/g) ?? []).length % 2 === 1;
}
