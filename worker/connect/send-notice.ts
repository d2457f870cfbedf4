/** Posts notices to the operator's address. */
import type { SendNotice } from "../../activities/runtime/notices.ts";

/** Timeout of a request; a silent address is tried again later. */
const TIMEOUT_MS = 10_000;

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
      const { name } = error as Error;
      throw new Error(`The address of LONGHAUL_NOTIFY_URL could not be reached (${name}).`);
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`The address of LONGHAUL_NOTIFY_URL answered with ${response.status}.`);
  };
}
