/** The characters that HTML encoders write by name. Pure. Source: the HTML standard's list, of ASCII and Latin-1. */

/** Names of ASCII characters, each in front of the character; several names may stand for one. */
const ASCII =
  'Tab \t NewLine \n excl ! quot " QUOT " num # dollar $ percnt % amp & AMP & apos \' lpar ( rpar ) ast * midast * plus + ' +
  "comma , period . sol / colon : semi ; lt < LT < equals = gt > GT > quest ? commat @ lsqb [ lbrack [ bsol \\ rsqb ] rbrack ] " +
  "Hat ^ lowbar _ UnderBar _ grave ` DiacriticalGrave ` lcub { lbrace { verbar | vert | VerticalLine | rcub } rbrace }";

/** The names of U+00A0 to U+00FF in order. */
const LATIN_1 =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para " +
  "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute " +
  "Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute " +
  "THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde " +
  "ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";

/** From a name to the character's code. */
export const NAMED_CHARACTERS: ReadonlyMap<string, number> = new Map([
  ...[...ASCII.matchAll(/(\w+) (\S|\t|\n)/g)].map((found): [string, number] => [
    found[1] ?? "",
    found[2]?.charCodeAt(0) ?? 0,
  ]),
  ...LATIN_1.split(" ").map((name, index): [string, number] => [name, 0xa0 + index]),
]);
