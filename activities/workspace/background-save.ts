/**
 * Saves of the workspace after a step's calls, during the next model step: off the critical path and without a separate
 * activity, which would add half again to a step's history and cost. If a crash prevents a save, the next one includes its changes,
 * because each compares with the last stored one.
 */

export type BackgroundSaves = ReturnType<typeof createBackgroundSaves>;

interface Activity {
  /** Running calls and saves in progress. */
  users: number;
  running: number;
  due: (() => Promise<unknown>) | undefined;
  saving: Promise<void>;
}

export function createBackgroundSaves() {
  const sessions = new Map<string, Activity>();
  const leave = (id: string, activity: Activity) => {
    activity.users -= 1;
    if (activity.users === 0) sessions.delete(id);
  };
  const enter = (id: string): Activity => {
    const activity = sessions.get(id) ?? {
      users: 0,
      running: 0,
      due: undefined,
      saving: Promise.resolve(),
    };
    sessions.set(id, activity);
    activity.users += 1;
    return activity;
  };
  /** A failed save fails nothing else: the next one, or the last at the end, includes its changes. */
  const track = <T>(id: string, activity: Activity, save: Promise<T>): Promise<T> => {
    activity.saving = save
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => leave(id, activity));
    return save;
  };
  return {
    /**
     * Runs a call; saves when the last of concurrent calls is over and one of them may have changed files.
     * @param body gets a promise to wait for before it changes files: the end of a save in progress, which never rejects
     */
    async around<T>(
      id: string,
      { changes, save }: { readonly changes: boolean; readonly save: () => Promise<unknown> },
      body: (saved: Promise<void>) => Promise<T>,
    ): Promise<T> {
      const activity = enter(id);
      activity.running += 1;
      try {
        return await body(activity.saving);
      } finally {
        activity.running -= 1;
        if (changes) activity.due = save;
        if (activity.running === 0 && activity.due) {
          const { due } = activity;
          activity.due = undefined;
          // The call may have stopped waiting for a save that is still in progress.
          void track(id, enter(id), activity.saving.then(due)).catch(() => undefined);
        }
        leave(id, activity);
      }
    },
    /** Saves now, after a save in progress; `settled` waits for this one too. */
    saving<T>(id: string, save: () => Promise<T>): Promise<T> {
      const activity = enter(id);
      return track(id, activity, activity.saving.then(save));
    },
    /** Resolves when no save of the session is in progress. Never rejects. */
    async settled(id: string): Promise<void> {
      await sessions.get(id)?.saving;
    },
  };
}
