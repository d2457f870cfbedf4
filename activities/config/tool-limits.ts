/** Limits of each tool: the defaults, and the overrides of `longhaul.yaml`. */
import type { ToolConfig } from "./agent-config.ts";
import type { ToolLimits } from "../contract/tools.ts";

/** Upper limit of any tool result, whatever a tool's own limit says. Source: requirement 4.4 (120,000). */
export const MAX_RESULT_CHARS = 120_000;

/** Longest any built-in tool may take if nothing is configured. Source: requirement 5 (bash, 10 min at most). */
const MAX_TOOL_TIMEOUT_MS = 600_000;

/** Source: requirement 4.4 (read 2,000 lines × 2,000 characters, grep 1,000 matches, anything 120,000). */
const COMMON: ToolLimits = {
  timeoutMs: 30_000,
  maxTimeoutMs: 120_000,
  maxChars: MAX_RESULT_CHARS,
  maxLines: 2_000,
  maxLineChars: 2_000,
  maxMatches: 1_000,
};

const OWN: Readonly<Record<string, Partial<ToolLimits>>> = {
  // requirement 5 and 4.4: 60 s by default, 10 min at most; 30,000 characters, head and tail.
  bash: { timeoutMs: 60_000, maxTimeoutMs: MAX_TOOL_TIMEOUT_MS, maxChars: 30_000 },
  bash_output: { maxChars: 30_000 },
  kill_process: { maxChars: 30_000 },
  // The matching line is cut: pi cuts at 500 (survey of coding agents).
  grep_content: { timeoutMs: 60_000, maxLineChars: 500 },
  glob_files: { timeoutMs: 60_000 },
  // A page of a stored output is as long as a command's result.
  read_output: { maxChars: 30_000 },
  // The delegate's last answer. Source: ours, some 2,000 tokens.
  delegate: { maxChars: 8_000 },
};

/** Limits that apply to a tool. @param overrides `tools.<name>` of the configuration */
export function defaultLimits(name: string, overrides?: ToolConfig): ToolLimits {
  const base: ToolLimits = { ...COMMON, ...OWN[name] };
  const own = overrides?.limits;
  const timeoutMs = overrides?.timeout ?? base.timeoutMs;
  return {
    timeoutMs,
    maxTimeoutMs: Math.max(timeoutMs, own?.maxTimeout ?? base.maxTimeoutMs),
    maxChars: Math.min(own?.maxChars ?? base.maxChars, MAX_RESULT_CHARS),
    maxLines: own?.maxLines ?? base.maxLines,
    maxLineChars: own?.maxLineChars ?? base.maxLineChars,
    maxMatches: own?.maxMatches ?? base.maxMatches,
  };
}
