/** What the bundle holds: the workflow. Message definitions are imported by clients from messages.ts. */
export { codingAgent } from "./coding-agent.ts";
