// Comma-separated values as RFC 4180 has them: quotes around what holds a comma, a quote or a line break,
// a quote within as two quotes. Reading also takes \n alone, a byte order mark and another separator.

/** Rows of fields. @throws RangeError with the line when a quote is never closed */
export function parseCsv(text, separator = ",") {
  const input = text.replace(/^\uFEFF/, "");
  const rows = [];
  let row = [];
  let field = "";
  let quoted = false;
  let openedAt = 0;
  let line = 1;

  const endField = () => {
    row.push(field);
    field = "";
  };
  const endRow = () => {
    endField();
    // A blank line is no row with one empty field.
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };

  for (let at = 0; at < input.length; at++) {
    const char = input[at];
    if (char === "\n") line++;
    if (quoted) {
      if (char !== '"') field += char;
      else if (input[at + 1] === '"') field += input[++at];
      else quoted = false;
    } else if (char === '"' && field === "") {
      quoted = true;
      openedAt = line;
    } else if (char === separator) endField();
    else if (char === "\n") endRow();
    else if (char !== "\r" || input[at + 1] !== "\n") field += char;
  }
  if (quoted) throw new RangeError(`The quote that opens in line ${openedAt} is never closed.`);
  if (field !== "" || row.length > 0) endRow();
  return rows;
}

/** Text of rows, with \r\n after each as the standard has it. */
export function formatCsv(rows) {
  return rows.map((row) => `${row.map(formatField).join(",")}\r\n`).join("");
}

function formatField(value) {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
