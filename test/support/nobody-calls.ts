/** For what is tested without other processes: nobody announces anything, and every session counts as watched. */
import type { Announcements } from "../../activities/store/announcements.ts";

export const nobodyCalls: Announcements = {
  isWatched: () => true,
  wake: async () => undefined,
  onWatched: () => () => undefined,
  stop: () => undefined,
  onStop: () => () => undefined,
  close: () => undefined,
};
