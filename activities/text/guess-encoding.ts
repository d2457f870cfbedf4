/**
 * Which of the encodings before Unicode a text may have: the one in which most of its characters are common ones. Pure. A guess,
 * good enough to show the text, never to write it.
 */

export interface Encoding {
  readonly name: string;
  /** As decoders know it. */
  readonly label: string;
}

interface Candidate extends Encoding {
  /** How many of the characters that are not ASCII are common ones, 0 to 1. */
  readonly score: (bytes: Uint8Array) => number;
}

const within = (byte: number, least: number, most: number): boolean => byte >= least && byte <= most;

/** @param common whether two bytes are a frequent character; `alone`: whether a byte is a character by itself */
function pairs(common: (lead: number, trail: number) => boolean, alone = (_byte: number): boolean => false) {
  return (bytes: Uint8Array): number => {
    let all = 0;
    let fit = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const lead = bytes[at] ?? 0;
      if (lead < 0x80) continue;
      all += 1;
      if (alone(lead)) continue;
      at += 1;
      if (common(lead, bytes[at] ?? 0)) fit += 1;
    }
    return all === 0 ? 0 : fit / all;
  };
}

/** @param common whether a byte is a frequent character, in a run of so many bytes beyond ASCII, at that place in it */
function runs(common: (byte: number, length: number, place: number) => boolean) {
  return (bytes: Uint8Array): number => {
    let all = 0;
    let fit = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      let length = 0;
      while ((bytes[at + length] ?? 0) >= 0x80) length += 1;
      for (let place = 0; place < length; place += 1)
        if (common(bytes[at + place] ?? 0, length, place)) fit += 1;
      all += length;
      at += length;
    }
    return all === 0 ? 0 : fit / all;
  };
}

const high = (trail: number): boolean => within(trail, 0xa1, 0xfe);

function koreanScore(bytes: Uint8Array): number {
  const pairsOfBytes = bytes.filter((byte) => byte >= 0x80).length / 2;
  // So few characters are as likely Chinese ones of the same bytes.
  return pairsOfBytes < 5 ? 0 : pairs((lead, trail) => within(lead, 0xb0, 0xc8) && high(trail))(bytes);
}

function eucJapaneseScore(bytes: Uint8Array): number {
  const kana = pairs((lead, trail) => within(lead, 0xa4, 0xa5) && high(trail))(bytes);
  const all = pairs(
    (lead, trail) => (within(lead, 0xa4, 0xa5) || lead === 0xa1 || within(lead, 0xb0, 0xcf)) && high(trail),
  );
  return kana < 0.2 ? 0 : all(bytes);
}

/** Where two fit equally well, the first is taken. Ranges: the levels of frequent characters in each standard. */
const CANDIDATES: readonly Candidate[] = [
  { name: "EUC-KR", label: "euc-kr", score: koreanScore },
  {
    name: "Shift-JIS",
    label: "shift_jis",
    score: pairs(
      (lead, trail) =>
        (lead === 0x82 && within(trail, 0x4f, 0xf1)) ||
        (lead === 0x83 && within(trail, 0x40, 0x96)) ||
        (lead === 0x81 && within(trail, 0x40, 0xac)) ||
        (within(lead, 0x88, 0x98) && trail >= 0x40),
      (byte) => within(byte, 0xa1, 0xdf),
    ),
  },
  { name: "EUC-JP", label: "euc-jp", score: eucJapaneseScore },
  {
    name: "GBK",
    label: "gbk",
    score: pairs((lead, trail) => (within(lead, 0xb0, 0xd7) || within(lead, 0xa1, 0xa3)) && high(trail)),
  },
  {
    name: "Big5",
    label: "big5",
    score: pairs(
      (lead, trail) =>
        within(lead, 0xa1, 0xc6) && lead !== 0xa2 && (within(trail, 0x40, 0x7e) || high(trail)),
    ),
  },
  { name: "Latin-1", label: "windows-1252", score: runs((_byte, length) => length <= 2) },
  {
    name: "windows-1251",
    label: "windows-1251",
    score: runs((byte, length, place) => length > 0 && (byte >= 0xe0 || (place === 0 && byte >= 0xc0))),
  },
  {
    name: "KOI8-R",
    label: "koi8-r",
    score: runs(
      (byte, length, place) => length > 0 && (within(byte, 0xc0, 0xdf) || (place === 0 && byte >= 0xe0)),
    ),
  },
];

/** Below this, no guess is better than this one. */
const LEAST_SCORE = 0.6;

/** @param decodes whether the whole text can be read so; undefined: nothing fits */
export function guessEncoding(bytes: Uint8Array, decodes: (label: string) => boolean): Encoding | undefined {
  let best: (Encoding & { readonly points: number }) | undefined;
  for (const { name, label, score } of CANDIDATES) {
    const points = score(bytes);
    if (points >= LEAST_SCORE && points > (best?.points ?? 0) && decodes(label))
      best = { name, label, points };
  }
  return best === undefined ? undefined : { name: best.name, label: best.label };
}
