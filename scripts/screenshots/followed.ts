/** A pull request on a real Gitea that is followed: a reviewer wants something, and gets it. */
import { findFollow, listFollowRounds } from "../../activities/store/follows.ts";
import { eventually } from "../../test/support/eventually.ts";
import { giteaPrograms } from "../../test/support/gitea/programs.ts";
import { type GiteaServer, startGitea } from "../../test/support/gitea/server.ts";
import { call, scriptedModel } from "../../test/support/scripted-model.ts";
import { imagePath, showDetails, type Stand, type Story } from "./stand.ts";

const SESSION = "iso-weeks";
const PULL = "/repos/owner/calendar/pulls/1";

const WEEK = `// The Thursday of a week decides whose year it is.
export function isoWeek(date) {
  const day = date.getUTCDay();
  const thursday = new Date(date.getTime() + (4 - day) * 86_400_000);
  const first = Date.UTC(thursday.getUTCFullYear(), 0, 1);
  return Math.ceil(((thursday - first) / 86_400_000 + 1) / 7);
}
`;
const commit = (message: string) => `git add -A; git commit -qm '${message}'`;

const FOLLOWED = scriptedModel()
  .calls("bash", { command: `cat > week.js <<'END'\n${WEEK}END\n${commit("Accept ISO weeks")}` })
  .says("The parser accepts ISO weeks.")
  .answers(
    call("bash", {
      command: `sed -i 's/getUTCDay();/getUTCDay() || 7;/' week.js; ${commit("Count Sunday as the last day")}`,
    }),
    call("reply_review", {
      thread: "week.js:3",
      text: "Right: `getUTCDay()` is 0 on a Sunday, which belongs to the week before. It counts as day 7 now.",
      outcome: "fixed",
    }),
  )
  .says("Sundays belong to the week that ends with them now.");

/** @returns the story, and what a worker needs to follow it */
export async function followed(): Promise<{
  readonly story: Story;
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}> {
  const programs = await giteaPrograms((line) => process.stderr.write(`${line}\n`));
  if (!programs.ok) throw new Error(`There is no Gitea: ${programs.why}.`);
  const server = await startGitea(programs);
  await server.makeRepository("calendar");
  return {
    story: { session: SESSION, model: FOLLOWED, take: (stand) => takeFollowed(stand, server) },
    environment: { LONGHAUL_GIT_TOKEN: server.tokens.bot },
    close: () => server.close(),
  };
}

async function takeFollowed(stand: Stand, server: GiteaServer): Promise<void> {
  const settings = stand.writeSettings(
    "git: { forge: gitea, follow: { on: true, settle: 5s } }\nsandbox: { network: none }\n",
  );
  const repository = `${server.url}/owner/calendar.git`;
  const flags = ["--id", SESSION, "--repo", repository, "--config", settings];
  await stand.longhaul("start", "Accept ISO weeks.", ...flags, "--follow");
  await stand.isSession("completed");
  const state = async () => (await findFollow(stand.store.db, SESSION))?.state;
  await eventually("it is followed", async () => (await state()) === "following", 60_000);
  await server.made("dev", "POST", `${PULL}/reviews`, {
    event: "REQUEST_CHANGES",
    body: "One thing about Sundays.",
    comments: [{ path: "week.js", new_position: 3, body: "On a Sunday this is 0, so the week is wrong." }],
  });
  await stand.longhaul("wake", SESSION);
  const rounds = () => listFollowRounds(stand.store.db, SESSION);
  await eventually("the round is over", async () => (await rounds())[0]?.endedAt != null, 120_000);

  const ui = await stand.uiOf(`follow:${SESSION}`);
  await showDetails(ui, "looks again at");
  await ui.screenshot({ path: imagePath("web-ui-follow") });
  const pull = await stand.open(`${server.url}/owner/calendar/pulls/1`, 1100, 1400);
  await pull.locator(".comment-code-cloud, .code-comment").first().waitFor();
  await pull.screenshot({ path: imagePath("follow-review") });
}
