/** Every server that people use, by name: one switch of the model server. Source of each beside its row. */
import type { Dialect, DialectName } from "./dialect.ts";
import { HOSTED } from "./hosted.ts";
import { LOCAL } from "./local.ts";
import { ROUTERS } from "./routers.ts";

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  openai: { api: "responses" },
  "openai-chat": { api: "chat" },
  anthropic: { api: "messages" },
  gemini: { api: "gemini", basePath: "/v1beta" },
  ...ROUTERS,
  ...HOSTED,
  ...LOCAL,
};

/** The four wires as their owners document them, strict: no dialect at all. */
export const OFFICIAL: Dialect = { api: "responses", chat: { reasoning: "reasoning_content" } };
