/** Whose words count: asked of the forge at that moment, by a person's number. */
import type { FollowSettings } from "../config/follow-settings.ts";
import type { ForgeCall } from "../forge/calls.ts";
import type { ForgeUser } from "../forge/facts.ts";
import type { Forge } from "../forge/forge.ts";

export interface Trust {
  /** Whether a review counts: of people who may write to the repository, and of the bots of the settings. @throws ForgeRefusal */
  readonly mayReview: (user: ForgeUser | undefined) => Promise<boolean>;
  /** Whether somebody may tell the agent what to do: a person who may write to the repository. @throws ForgeRefusal */
  readonly mayDirect: (user: ForgeUser | undefined) => Promise<boolean>;
}

/** Each person is asked for once. */
export function askTrust({
  forge,
  call,
  settings,
}: {
  readonly forge: Pick<Forge, "mayWrite">;
  readonly call: ForgeCall;
  readonly settings: Pick<FollowSettings, "reviewBots">;
}): Trust {
  const known = new Map<number, Promise<boolean>>();
  const isReviewBot = ({ id }: ForgeUser) => settings.reviewBots.includes(id);
  const mayWrite = (user: ForgeUser): Promise<boolean> => {
    const answer = known.get(user.id) ?? forge.mayWrite(call, user);
    known.set(user.id, answer);
    return answer;
  };
  return {
    async mayReview(user) {
      if (user === undefined) return false;
      return isReviewBot(user) || (user.isBot !== true && (await mayWrite(user)));
    },
    async mayDirect(user) {
      return user !== undefined && user.isBot !== true && !isReviewBot(user) && (await mayWrite(user));
    },
  };
}
