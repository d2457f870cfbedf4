/**
 * Which parts of a result a command wrote to standard output, and which to standard error. The model reads one text, in the order of
 * arrival; programs can have the streams apart.
 */

export type Stream = "stdout" | "stderr";
/** From a place up to another, in UTF-16 units of the result's text. */
type Span = readonly [from: number, to: number];
/** What is in neither list are notes of ours. */
export type Streams = Readonly<Record<Stream, readonly Span[]>>;

/** A part of a text, and who wrote it; `both`: it is not known which stream it is. */
export interface TextRun {
  readonly by: Stream | "both" | "us";
  readonly text: string;
}

export interface TextsApart {
  readonly stdout: string | null;
  readonly stderr: string | null;
}

export const joinRuns = (runs: readonly TextRun[]): string => runs.map(({ text }) => text).join("");

/** The first `length` units of a text by its runs; the line end at the end of each stream is nobody's. */
export function shownRuns(runs: readonly TextRun[], length: number): TextRun[] {
  const ended = new Set<TextRun["by"]>();
  const parts = runs
    .filter(({ text }) => text !== "")
    .toReversed()
    .flatMap((run): TextRun[] => {
      if (run.by === "us" || ended.has(run.by)) return [run];
      ended.add(run.by);
      if (!run.text.endsWith("\n")) return [run];
      return [
        { by: "us", text: "\n" },
        { by: run.by, text: run.text.slice(0, -1) },
      ];
    })
    .toReversed();
  let room = length;
  return parts.map(({ by, text }) => {
    const cutText = text.slice(0, room);
    room -= cutText.length;
    return { by, text: cutText };
  });
}

/**
 * A text after a change that a run may take part in alone (colours and secrets are removed from it), and where the runs at its
 * beginning are then. They are undefined if the change does not give the same run by run, or stream by stream: then what it
 * removed crossed from one stream to the other, or is whole only in a stream by itself, as a secret may be.
 */
export function changeRuns(
  { text, runs }: { readonly text: string; readonly runs?: readonly TextRun[] | undefined },
  change: (text: string) => string,
): { readonly text: string; readonly streams: Streams | undefined } {
  const changed = change(text);
  if (runs === undefined || runs.some(({ by }) => by === "both"))
    return { text: changed, streams: undefined };
  const rest: TextRun = { by: "us", text: text.slice(joinRuns(runs).length) };
  const parts = [...runs, rest].map((run) => ({ by: run.by, text: change(run.text) }));
  const isSame = (stream: Stream) => {
    const own = runs.filter(({ by }) => by === stream);
    const after = joinRuns(parts.filter(({ by }) => by === stream));
    return own.length < 2 || change(joinRuns(own)) === after;
  };
  const fits = joinRuns(parts) === changed && isSame("stdout") && isSame("stderr");
  return { text: changed, streams: fits ? placesOf(parts) : undefined };
}

function placesOf(parts: readonly TextRun[]): Streams {
  const spans: Record<Stream, Span[]> = { stdout: [], stderr: [] };
  let at = 0;
  for (const { by, text } of parts) {
    if ((by === "stdout" || by === "stderr") && text !== "") spans[by].push([at, at + text.length]);
    at += text.length;
  }
  return spans;
}

/** A part of a text that stays, and where it is afterwards. */
export interface KeptPart {
  readonly from: number;
  readonly to: number;
  readonly at: number;
}

/** The places in what is left of a text. */
export function cutStreams({ stdout, stderr }: Streams, keptParts: readonly KeptPart[]): Streams {
  const cut = (spans: readonly Span[]) =>
    keptParts.flatMap(({ from, to, at }) =>
      spans
        .map(([first, last]): Span => [Math.max(first, from) - from + at, Math.min(last, to) - from + at])
        .filter(([first, last]) => first < last),
    );
  return { stdout: cut(stdout), stderr: cut(stderr) };
}

/** Both streams, each without the line end at its end; null if they were not kept apart. */
export function textsApart(text: string, streams: Streams | null): TextsApart {
  if (streams === null) return { stdout: null, stderr: null };
  const of = (spans: readonly Span[]) => spans.map(([from, to]) => text.slice(from, to)).join("");
  return { stdout: of(streams.stdout), stderr: of(streams.stderr) };
}
