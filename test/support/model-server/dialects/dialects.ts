/** Every common server by name. The source of each is next to its row. */
import type { Dialect } from "./dialect.ts";
import { HOSTED } from "./hosted.ts";
import { LOCAL } from "./local.ts";
import { ROUTERS } from "./routers.ts";

const ALL = {
  openai: { api: "responses", byModel: true },
  "openai-chat": { api: "chat", byModel: true },
  anthropic: { api: "messages" },
  gemini: { api: "gemini", basePath: "/v1beta" },
  ...ROUTERS,
  ...HOSTED,
  ...LOCAL,
} satisfies Record<string, Dialect>;

export type DialectName = keyof typeof ALL;
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = ALL;

/** The four wires as their owners document them; but chat shows thoughts and accepts them back, as compatible servers do. */
export const OFFICIAL: Dialect = {
  api: "responses",
  byModel: true,
  known: { parameters: [], fields: ["reasoning_content"], needsDetail: true },
  chat: { reasoning: "reasoning_content" },
};
