/**
 * What a run's handlers leave for its interceptors. A worker loads the modules once for all its runs (worker/bundle.ts), so a
 * variable of a module would be every run's; Temporal gives each run globals of its own.
 */
interface ThisRun {
  /** Takes messages of persons as they come. Absent until the run's handlers are set. */
  takeMessage?: (message: unknown) => void;
  /** Shows people a remark. */
  showRemark?: (text: string) => void;
}

const KEY = Symbol.for("longhaul.run");

export function thisRun(): ThisRun {
  const globals = globalThis as { [KEY]?: ThisRun };
  return (globals[KEY] ??= {});
}
