/** A session that installs something in its first run, and looks at it in its second. */
import { scriptedModel } from "./scripted-model.ts";

/** Installs something in the workspace and at home, and leaves a process behind. */
export const INSTALL =
  "mkdir -p node_modules/left-pad && echo pad > node_modules/left-pad/index.js && echo tool > ~/tool; true npm install left-pad; (sleep 1000 &) ; echo kept > a.txt";
/** Through one pipe: what comes through two has no certain order. */
export const LOOK = "exec 2>&1; cat a.txt node_modules/left-pad/index.js ~/tool; pgrep -c sleep";

export const installsAndLooks = () =>
  scriptedModel()
    .calls("bash", { command: INSTALL })
    .says("One.")
    .calls("bash", { command: LOOK })
    .says("Two.");

/** What the look says if all is there, and no process. */
export const ALL_THERE = /^kept\npad\ntool\n0/;

/** Keeps a stopped sandbox for three days. */
export const KEEPING = { sandbox: { network: "none" as const, park: { keep: 3 * 86_400_000 } } };
