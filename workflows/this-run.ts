/**
 * What a run's handlers share with its interceptors. A worker loads the modules once for all its runs (worker/bundle.ts), so all
 * runs would share a module's variable; Temporal gives each run its own globals.
 */
interface ThisRun {
  /** Takes messages of people as they arrive. Absent until the run's handlers are set. */
  takeMessage?: (message: unknown) => void;
  /** Shows people a remark. */
  showRemark?: (text: string) => void;
}

const KEY = Symbol.for("longhaul.run");

export function thisRun(): ThisRun {
  const globals = globalThis as { [KEY]?: ThisRun };
  return (globals[KEY] ??= {});
}
