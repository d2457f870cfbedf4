/**
 * Takes the pictures for README and manual: of a session that asks a question and delegates, of one that waits and is verified, and of one
 * whose pull request is followed on a real Gitea:
 *   TEMPORAL_ADDRESS=… TEMPORAL_UI=http://… node scripts/screenshots/main.ts [asks|verified|followed]
 * Needs a browser as the tests do (CHROME_BIN), Docker and a Temporal server with its Web UI.
 */
import { asks } from "./asks.ts";
import { followed } from "./followed.ts";
import { startStand, type Story } from "./stand.ts";
import { verified } from "./verified.ts";

async function takeAll(only: string | undefined): Promise<void> {
  if (only === undefined || only === "asks") await take(asks);
  if (only === undefined || only === "verified") await take(verified);
  if (only !== undefined && only !== "followed") return;
  const onGitea = await followed();
  try {
    await take(onGitea.story, onGitea.environment);
  } finally {
    await onGitea.close();
  }
}

async function take(story: Story, environment: Readonly<Record<string, string>> = {}): Promise<void> {
  const stand = await startStand(story, environment);
  try {
    await story.take(stand);
  } finally {
    await stand.close();
  }
}

const [, , only] = process.argv;
await takeAll(only);
