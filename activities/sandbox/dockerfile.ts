/**
 * What a Dockerfile would make the engine do outside the build's container: fetch sources of ADD, and take images. The engine reads
 * the file with a parser of its own, and versions of it differ (continued lines, the escape character), so it is read here in each
 * of these ways, and what any of them finds counts. What cannot be read for sure is refused.
 */

export interface DockerfileReading {
  /** The first line that is refused, and why. */
  readonly refused?: { readonly line: number; readonly why: string };
  /** Images that FROM and COPY --from take, stages of the file left out. */
  readonly images: readonly { readonly line: number; readonly image: string }[];
}

interface Instruction {
  readonly line: number;
  readonly lastLine: number;
  /** In capitals. */
  readonly name: string;
  readonly flags: readonly string[];
  readonly rest: string;
}

/** @param args values of its ARGs, from outside */
export function readDockerfile(text: string, args: Readonly<Record<string, string>>): DockerfileReading {
  const readings = waysFor(text).map((way) => readOne(instructionsOf(text, way), args));
  const refused = [...readings.map((reading) => reading.refused), fetchedByAnyLine(text)]
    .filter((refusal) => refusal !== undefined)
    .toSorted((a, b) => a.line - b.line)[0];
  const images = new Map(
    readings.flatMap((reading) => reading.images).map((reference) => [reference.image, reference]),
  );
  return { refused, images: [...images.values()] };
}

/** Line ends that are none for the engine. */
const ODD_LINE_END = /[\v\f\u0085\u2028\u2029]|\r(?!\n)/;

/**
 * The Dockerfile with a label at the beginning of each stage. The engine takes any layer that it has with the same instructions before it;
 * so it takes only layers with this label.
 * @param layers names whose they are. Who knows it can take them
 * @returns undefined if it is not certain where the stages begin
 */
export function withOwnLayers(dockerfile: Buffer, layers: string): Buffer | undefined {
  const text = dockerfile.toString("utf8");
  if (ODD_LINE_END.test(text)) return undefined;
  const [ends, ...others] = waysFor(text).map((way) =>
    instructionsOf(text, way)
      .filter(({ name }) => name === "FROM")
      .map(({ lastLine }) => lastLine),
  );
  if (ends === undefined || others.some((other) => other.join() !== ends.join())) return undefined;
  const label = `LABEL longhaul.setup.layers="${layers}"`;
  const lines = dockerfile.toString("latin1").split("\n");
  return Buffer.from(
    lines.flatMap((line, at) => (ends.includes(at + 1) ? [line, label] : [line])).join("\n"),
    "latin1",
  );
}

interface Way {
  /** Ends a line that goes on. */
  readonly escape: "\\" | "`";
  /** Whether a doubled one does not. */
  readonly doubledEnds: boolean;
  /** What may follow the escape character. */
  readonly blank: RegExp;
}

const WAYS: readonly Way[] = (["\\", "`"] as const).flatMap((escape) =>
  [false, true].flatMap((doubledEnds) =>
    [/[ \t]+$/, /\s+$/].map((blank) => ({ escape, doubledEnds, blank })),
  ),
);

// Only a directive sets the other character; one in the wrong place is none for the engine.
const waysFor = (text: string): readonly Way[] =>
  WAYS.filter(({ escape }) => escape === "\\" || /^\s*#\s*escape\s*=\s*`/im.test(text));

// The engine's own line ends, and those that some reader takes for one.
const linesOf = (text: string): string[] =>
  text.replace(/^\uFEFF/, "").split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/);

/** Whatever the line before it says: a line that reads as ADD with an address. */
function fetchedByAnyLine(text: string): DockerfileReading["refused"] {
  for (const [at, line] of linesOf(text).entries()) {
    const instruction = instructionIn(line, at + 1, at + 1);
    const remote =
      instruction?.name === "ADD" && instruction.rest.split(/[\s"',[\]]+/).find((word) => REMOTE.test(word));
    if (remote) return { line: at + 1, why: fetched(remote) };
  }
  return undefined;
}

function instructionsOf(text: string, { escape, doubledEnds, blank }: Way): Instruction[] {
  const instructions: Instruction[] = [];
  let joined = "";
  let firstLine = 0;
  const end = (at: number) => {
    const instruction = instructionIn(joined, firstLine, at);
    if (instruction !== undefined) instructions.push(instruction);
    joined = "";
  };
  for (const [at, raw] of linesOf(text).entries()) {
    const line = raw.replace(blank, "");
    if (/^\s*#/.test(line) || (joined !== "" && line.trim() === "")) continue;
    if (joined === "") firstLine = at + 1;
    const goesOn = line.endsWith(escape) && !(doubledEnds && line.endsWith(escape + escape));
    joined += goesOn ? line.slice(0, -1) : line;
    if (!goesOn) end(at + 1);
  }
  end(linesOf(text).length);
  return instructions;
}

const INSTRUCTION = /^\s*((?:ONBUILD\s+)*)(ADD|COPY|FROM|ARG|ENV)(?=\s|$)\s*((?:--\S+\s*)*)(.*)$/is;

function instructionIn(text: string, line: number, lastLine: number): Instruction | undefined {
  const [, , name, flags = "", rest = ""] = INSTRUCTION.exec(text) ?? [];
  if (name === undefined) return undefined;
  return {
    line,
    lastLine,
    name: name.toUpperCase(),
    flags: flags.split(/\s+/).filter(Boolean),
    rest: rest.trim(),
  };
}

function readOne(all: readonly Instruction[], args: Readonly<Record<string, string>>): DockerfileReading {
  const stages = new Set<string>();
  const variables = new Map<string, string>();
  const images: { line: number; image: string }[] = [];
  let isBeforeFrom = true;
  for (const { line, name, flags, rest } of all) {
    if (name === "ADD") {
      const why = sourceTrouble(rest);
      if (why !== undefined) return { refused: { line, why }, images };
    }
    // Before the first FROM, ARGs are for FROM.
    if (name === "ARG" && isBeforeFrom) for (const word of rest.split(/\s+/)) learn(variables, word, args);
    if (name === "FROM") {
      isBeforeFrom = false;
      const [base = "", as, alias] = rest.split(/\s+/);
      const image = substituted(base, variables);
      if (image === undefined)
        return { refused: { line, why: `the image of FROM ${base} cannot be told for sure` }, images };
      if (image !== "scratch" && !stages.has(image.toLowerCase())) images.push({ line, image });
      if (/^as$/i.test(as ?? "") && alias !== undefined) stages.add(alias.toLowerCase());
    }
    if (name !== "COPY" && name !== "ADD") continue;
    for (const flag of flags) {
      const from = /^--from=(.*)$/i.exec(flag)?.[1];
      if (from === undefined || /^\d+$/.test(from) || stages.has(from.toLowerCase())) continue;
      if (/["'$\\`]/.test(from))
        return { refused: { line, why: `the image of ${flag} cannot be told for sure` }, images };
      images.push({ line, image: from });
    }
  }
  return { images };
}

function learn(variables: Map<string, string>, word: string, args: Readonly<Record<string, string>>): void {
  const [name = "", ...value] = word.split("=");
  const argument = Object.hasOwn(args, name) ? args[name] : undefined;
  const text = argument ?? (value.length === 0 ? undefined : unquoted(value.join("=")));
  if (text === undefined) variables.delete(name);
  else variables.set(name, text);
}

const unquoted = (text: string): string => text.replace(/^(["'])(.*)\1$/s, "$2");

/** @returns undefined for what is not plain text and `$NAME`, `${NAME}`, `${NAME:-text}` of known arguments */
function substituted(text: string, variables: ReadonlyMap<string, string>): string | undefined {
  let isKnown = true;
  const plain = text.replace(
    /\$(?:(\w+)|\{(\w+)(?::-([^{}$]*))?\})/g,
    (_whole, bare?: string, braced?: string, otherwise?: string) => {
      const value = variables.get(bare ?? braced ?? "") || otherwise;
      if (value === undefined) isKnown = false;
      return value ?? "";
    },
  );
  const image = unquoted(plain);
  return isKnown && !/["'$\\`{}\s]/.test(image) && image !== "" ? image : undefined;
}

/** Schemes and forms of what an engine fetches itself. Source: moby and BuildKit, ADD. */
const REMOTE = /^[a-z][a-z0-9+.-]*:|^git@|^[\w.-]+@[\w.-]+:|^github\.com\//i;
const REMOTE_STARTS = [
  "http://",
  "https://",
  "git://",
  "git@",
  "ssh://",
  "ftp://",
  "oci://",
  "docker-image://",
  "github.com/",
];

const fetched = (source: string) =>
  `ADD ${source} would be fetched by the Docker engine, outside the sandbox`;

/** Why the sources of ADD may be elsewhere than in the context; undefined if they are files of it. */
function sourceTrouble(rest: string): string | undefined {
  const operands = rest.startsWith("[") ? jsonWords(rest) : rest.split(/\s+/).filter(Boolean);
  if (operands === undefined) return "ADD's list of files cannot be read for sure";
  // All but the last, which is a place in the image; with one word that one.
  const sources = operands.length > 1 ? operands.slice(0, -1) : operands;
  for (const source of sources) {
    if (/["'\\`]/.test(source) || /<</.test(source)) return `ADD ${source} cannot be read for sure`;
    if (REMOTE.test(source)) return fetched(source);
    const [plain = ""] = source.split("$", 1);
    // What is put in for a variable could complete an address.
    const mayBeRemote = REMOTE_STARTS.some((start) => start.startsWith(plain.toLowerCase()));
    if (source.includes("$") && mayBeRemote)
      return `ADD ${source} could become an address, which the Docker engine would fetch outside the sandbox`;
  }
  return undefined;
}

function jsonWords(text: string): readonly string[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every((word) => typeof word === "string") ? value : undefined;
  } catch {
    return undefined;
  }
}
