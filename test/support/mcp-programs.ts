/** MCP servers as programs for the sandbox: their settings. */
import { fixtureText } from "./fixture-text.ts";

const program = (name: string) => ({ command: "python3", args: ["-c", fixtureText(`programs/${name}.py`)] });

/** Of the older revisions. */
export const mcpProgram = { ...program("mcp"), env: { GIVEN: "this" } };

/** Of the revision 2026-07-28: it asks a person, or works as a task. */
export const mcpAskingProgram = program("mcp-asking");
