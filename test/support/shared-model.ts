/** One scripted model for many sessions behind one worker: each request is answered by its own session's script. */
import type { ParsedRequest, Reply, ServedRequest } from "./model-server/wire.ts";
import { CANARY } from "./canary.ts";
import { startScriptedModel, type ScriptedModelOptions } from "./scripted-model.ts";

/** Decides by the request alone, so that a repeated step gets the same answer. */
export type Answering = (request: ParsedRequest) => Reply | Promise<Reply>;

export interface SharedModel {
  /** For OPENAI_BASE_URL; the key is CANARY. */
  readonly baseUrl: string;
  /** Sets the script of this session's requests. */
  serve(sessionId: string, answering: Answering): void;
  /** One session's requests. */
  logOf(sessionId: string): readonly ServedRequest[];
  close(): Promise<void>;
}

export async function startSharedModel(options: ScriptedModelOptions = {}): Promise<SharedModel> {
  const answerings = new Map<string, Answering>();
  const server = await startScriptedModel(
    (request) => {
      const answering = answerings.get(request.cacheKey ?? "");
      if (!answering) throw new Error(`No script for session ${request.cacheKey}.`);
      return answering(request);
    },
    { apiKey: CANARY, ...options },
  );
  return {
    baseUrl: server.baseUrl,
    serve: (sessionId, answering) => void answerings.set(sessionId, answering),
    logOf: (sessionId) => server.log.filter(({ request }) => request?.cacheKey === sessionId),
    close: () => server.close(),
  };
}
