/** What `doctor` finds: a part that answers, or what is wrong with it and how to mend it. */
import { isPermissionDenied } from "../../temporal/probe.ts";
import { ServiceMissing, WrongSettings } from "../../temporal/service-missing.ts";
import type { Finding } from "./sandbox-check.ts";
import { settingOf } from "./services.ts";

/** A finding under its name. */
export interface Check extends Finding {
  readonly name: string;
}

const BRINGS_UP = "`npm start` or `longhaul up` starts one.";

/** @param variable that names the service, if starting one of our own would help while it is not set */
export async function probed(variable: string | undefined, probe: () => Promise<string>): Promise<Finding> {
  try {
    return { ok: true, found: await probe() };
  } catch (error) {
    if (error instanceof WrongSettings)
      return { ok: false, found: error.message, fix: `Correct ${variable ?? "it"}, or unset it.` };
    if (!(error instanceof ServiceMissing)) throw error;
    // If its address was configured, starting another one would not help.
    const isOurs =
      variable !== undefined && settingOf(variable) === undefined && !isPermissionDenied(error.cause);
    return { ok: false, found: error.problem, fix: isOurs ? BRINGS_UP : error.fix };
  }
}
