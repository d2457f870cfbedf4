/** What processes and the machine have used until now, and what a step's share is. Linux only. */
import { readdirSync, readFileSync } from "node:fs";

/** Source: Linux, for every machine that it runs on. */
const MS_PER_TICK = 10;

/** Resident, in bytes; 0 if it is gone. */
export function residentBytes(pid: number): number {
  const kb = /VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1];
  return Number(kb ?? 0) * 1_024;
}

/** What new programs could still have, in bytes. */
export function availableBytes(): number {
  return Number(/MemAvailable:\s+(\d+)/.exec(read("/proc/meminfo"))?.[1] ?? 0) * 1_024;
}

export function ownCpuMs(pid: number): number {
  const fields = statOf(pid);
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * MS_PER_TICK;
}

/** With those of its children that ended, and those that live. */
export function treeCpuMs(pid: number): number {
  const fields = statOf(pid);
  const ended = (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) * MS_PER_TICK;
  return ownCpuMs(pid) + ended + childrenOf(pid).reduce((sum, child) => sum + ownCpuMs(child), 0);
}

function childrenOf(parent: number): number[] {
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return pids.filter((pid) => Number(statOf(pid)[1]) === parent);
}

/** Of `cpu user nice system idle iowait irq softirq steal`, all but the third and fourth of the last six. */
export function machineCpuMs(): number {
  const [, user, nice, system, , , irq, softirq] = (read("/proc/stat").split("\n")[0] ?? "")
    .split(/\s+/)
    .map(Number);
  const ticks = [user, nice, system, irq, softirq].reduce<number>((sum, count) => sum + (count ?? 0), 0);
  return ticks * MS_PER_TICK;
}

/** What was counted between two readings, by the unit. */
export function perUnit<Counts extends object>(before: Counts, after: Counts, units = 1): Counts {
  const kinds = Object.keys(before) as (keyof Counts)[];
  const between = (kind: keyof Counts) => (Number(after[kind]) - Number(before[kind])) / units;
  return Object.fromEntries(kinds.map((kind) => [kind, between(kind)])) as Counts;
}

/** Fields from the state on: the name before it may hold anything. */
function statOf(pid: number): string[] {
  return read(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ") ?? [];
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // It ended in this moment.
    return "";
  }
}
