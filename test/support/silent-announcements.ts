/** For tests without other processes: announces nothing, and counts every session as watched. */
import type { Announcements } from "../../activities/store/announcements.ts";

export const silentAnnouncements: Announcements = {
  isWatched: () => true,
  wake: async () => undefined,
  onWatched: () => () => undefined,
  stop: () => undefined,
  onStop: () => () => undefined,
  close: () => undefined,
};
