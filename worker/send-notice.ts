/** Posts notices to the operator's address. */
import { isNetworkTrouble, passes } from "../activities/contract/errors.ts";
import type { SendNotice } from "../activities/runtime/deps.ts";

/** Timeout of a request; a silent address is tried again later. */
const TIMEOUT_MS = 10_000;

/** The notice did not arrive. `isPassing`: whether it is sent again. */
class NoticeFailed extends Error {
  override readonly name = "NoticeFailed";
  readonly isPassing: boolean;

  constructor(message: string, isPassing: boolean) {
    super(message);
    this.isPassing = isPassing;
  }
}

/** No error names the address, which may hold a secret. */
export function noticeSender(url: string): SendNotice {
  return async (notice, signal) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": notice.id },
      body: JSON.stringify(notice),
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    }).catch((error: unknown) => {
      signal.throwIfAborted();
      const code = codeOf(error);
      throw new NoticeFailed(
        `The address of LONGHAUL_NOTIFY_URL could not be reached (${code})`,
        isNetworkTrouble(error),
      );
    });
    await response.body?.cancel();
    if (!response.ok)
      throw new NoticeFailed(
        `The address of LONGHAUL_NOTIFY_URL answered with ${response.status}`,
        passes.http(response.status),
      );
  };
}

/** The system's code, which says why; an error's other words could name the address. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  return typeof code === "string" && code !== "" ? code : (error as Error).name;
}
