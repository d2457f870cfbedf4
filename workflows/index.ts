/** What the bundle holds: the workflows. Message definitions are imported by clients from messages.ts. */
export { codingAgent } from "./coding-agent.ts";
export { followSession } from "./follow-session.ts";
export { sessionBatch } from "./session-batch.ts";
export { warmRepository } from "./warm-repository.ts";
