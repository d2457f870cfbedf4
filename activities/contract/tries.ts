/**
 * How often work is tried before it is given up. Temporal tries it again, by the options in `workflows/proxies.ts`. Attempts that were
 * deferred did nothing and count for none of these (`tries` of the activity's scope). Temporal counts them, so its own limit is far away
 * for what may be deferred, and `inScope` holds that to the one here.
 */
export const TRIES = {
  /** A minute apart at most: outlasts an outage of a quarter of an hour of a database, an engine or a host. */
  away: 20,
  /** A minute apart: outlasts an outage of a day; for a batch, and for what a run must store before it ends. */
  day: 1_440,
  /** Sooner after each other than the others, for the same quarter of an hour. */
  call: 60,
  /** To open, set up or fetch what a run begins with. Chosen: a person waits for it. */
  begin: 8,
  /** For what may be deferred for as long as its model's rate limit asks. Chosen: more than a week of the shortest long wait. */
  deferred: 100_000,

  /** Of these, a step's: two minutes apart at most, so that it outlasts a provider's outage of an hour. */
  step: 30,
  /** A summary's: outlasts a database's outage of a quarter of an hour. */
  summary: 20,

  /** Then a fallback model makes the step. Source: three, as users asked for. */
  beforeFallback: 3,
  /** Then what failed alike is not asked again. */
  ofTheSame: 2,
  /** Then the summary is made without a model. */
  beforeNoModel: 3,
  /** Then a request for which there is no room at the moment counts as one that does not fit. Chosen: two minutes. */
  beforeTooLarge: 8,
  /** Then a run ends with its sandbox still there: the reaper removes it. */
  beforeLeftBehind: 5,
  /** Then an unreachable remote is given up, after some 15 s in total. */
  beforeUnpublished: 5,
} as const;
