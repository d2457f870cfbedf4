/** Name patterns in which `*` matches any text. Pure. */

/** Whether a pattern matches a whole name. No regular expression: one with many `*` would practically never finish. */
export function fitsPattern(pattern: string, name: string): boolean {
  const [start = "", ...rest] = pattern.split("*");
  const end = rest.pop();
  if (end === undefined) return name === pattern;
  if (name.length < start.length + end.length || !name.startsWith(start) || !name.endsWith(end)) return false;
  let place = start.length;
  for (const part of rest) {
    const found = name.indexOf(part, place);
    if (found === -1) return false;
    place = found + part.length;
  }
  return place <= name.length - end.length;
}
