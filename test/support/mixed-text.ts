/** Text of the kinds that a coding agent reads: prose, code, JSON, logs, Chinese. Determined by the seed. */
const LINES: readonly ((n: number) => string)[] = [
  (n) =>
    `The ferry to quay ${n % 7} leaves a little later than the printed timetable says, as everybody knows.`,
  (n) =>
    `export function berth${n}(ship: Ship): number { return ship.length * ${n % 13} + offsets[${n % 5}]; }`,
  (n) =>
    `{"id":${n},"quay":${n % 7},"arrives":"2026-11-${10 + (n % 20)}T0${n % 10}:${10 + (n % 50)}:00Z","late":${n % 2 === 0}}`,
  (n) =>
    `[2026-11-21T10:${10 + (n % 50)}:${10 + (n % 49)}.${100 + (n % 900)}Z] INFO  importer/rows ${n * 17} rows in ${n % 900} ms (cache miss 0x${(n * 7_919).toString(16)})`,
  (n) => `第${n}号泊位的船今天晚点了，请通知码头上的工作人员。`,
  (n) => `    at Importer.read (/workspace/src/m${n % 23}/f${n % 70}.ts:${n % 300}:${n % 80})`,
];

export function mixedText(seed: number, lines: number): string {
  // Blocks of one kind, like files.
  return Array.from({ length: lines }, (_, line) => {
    const n = seed * 31 + line;
    return LINES[Math.floor(line / 12 + seed) % LINES.length]?.(n) ?? "";
  }).join("\n");
}
