/** Other spellings of settings that `longhaul.yaml` accepts (requirement D2), mapped to the documented ones. */

export type Group = Readonly<Record<string, unknown>>;

const TOOLS: Readonly<Record<string, string>> = { read: "read_file", grep: "grep_content" };

/** Limits that may also be written directly in a tool's group, with their names under `limits`. */
const LIMITS: Readonly<Record<string, string>> = {
  maxOutputChars: "maxChars",
  maxLines: "maxLines",
  maxLineChars: "maxLineChars",
  maxMatches: "maxMatches",
};

/** The settings under their documented names, which override aliases. A value that is not a group is unchanged. */
export function withoutAliases(settings: unknown): unknown {
  if (!isGroup(settings)) return settings;
  const { context, tools } = settings;
  return {
    ...settings,
    ...(isGroup(context) ? { context: contextOf(context) } : {}),
    ...(isGroup(tools) ? { tools: toolsOf(tools) } : {}),
  };
}

/** Accepts `context.compression.{strategy, options}`, and the options next to the strategy. */
function contextOf({ compression, ...context }: Group): Group {
  if (!isGroup(compression)) return compression === undefined ? context : { ...context, compression };
  const { strategy, options = {}, ...beside } = compression;
  if (!isGroup(options) || !isGroup(context["options"] ?? {})) return { ...context, compression };
  return {
    ...(strategy === undefined ? {} : { strategy }),
    ...context,
    options: { ...beside, ...options, ...(context["options"] as Group | undefined) },
  };
}

function toolsOf(tools: Group): Group {
  const named: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(tools)) {
    const known = TOOLS[name] ?? name;
    const tool = isGroup(value) ? toolOf(value) : value;
    const other = named[known];
    named[known] = isGroup(other) && isGroup(tool) ? { ...other, ...tool } : tool;
  }
  return named;
}

function toolOf(tool: Group): Group {
  const { limits = {} } = tool;
  const moved = Object.entries(tool).filter(([key]) => key in LIMITS);
  if (moved.length === 0 || !isGroup(limits)) return tool;
  const rest = Object.entries(tool).filter(([key]) => !(key in LIMITS));
  const own = Object.fromEntries(moved.map(([key, value]) => [LIMITS[key] ?? key, value]));
  return { ...Object.fromEntries(rest), limits: { ...own, ...limits } };
}

export function isGroup(value: unknown): value is Group {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
