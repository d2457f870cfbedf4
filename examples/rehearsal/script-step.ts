/** The parts of the rehearsal's script: steps with a sentence and tool calls. */

export interface ScriptStep {
  /** One or two short sentences; unique in the script, because a position is also found by them. */
  readonly text: string;
  readonly reasoning?: string;
  /** Empty only in the last step. */
  readonly calls: readonly ScriptCall[];
  /** What a summary made after this step should remember. */
  readonly decision?: string;
  readonly resolved?: string;
}

export interface ScriptCall {
  readonly name: string;
  /** A function if it depends on earlier results, such as the id of a background process. */
  readonly input: Input | ((results: readonly string[]) => Input);
  /** True if the script expects an error: a test that must fail, a text that does not exist. */
  readonly fails?: boolean;
}

type Input = Readonly<Record<string, unknown>>;

export const write = (path: string, content: string): ScriptCall => ({
  name: "write_file",
  input: { path, content },
});
export const edit = (path: string, oldString: string, newString: string): ScriptCall => ({
  name: "edit_file",
  input: { path, old_string: oldString, new_string: newString },
});
export const patch = (...lines: readonly string[]): ScriptCall => ({
  name: "apply_patch",
  input: { patch: ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n") },
});
export const read = (path: string, offset?: number, limit?: number): ScriptCall => ({
  name: "read_file",
  input: {
    path,
    offset,
    limit,
  },
});
export const grep = (pattern: string, path = "."): ScriptCall => ({
  name: "grep_content",
  input: { pattern, path },
});
export const list = (path = "."): ScriptCall => ({ name: "list_directory", input: { path } });
export const bashCall = (command: string): ScriptCall => ({ name: "bash", input: { command } });
export const failing = (call: ScriptCall): ScriptCall => ({ ...call, fails: true });

/** Id of the background process in the newest result that names one. */
export const withProcess = (name: "bash_output" | "kill_process"): ScriptCall => ({
  name,
  input: (results) => ({
    id: results.findLast((text) => PROCESS.test(text))?.match(PROCESS)?.[1] ?? "unknown",
  }),
});
const PROCESS = /\bid "([\w.-]+)"/;
