/** `--output-schema`: a JSON Schema from a file, checked before anything is started. */
import { readBoundedText } from "../console/read-bounded-text.ts";
import { schemaTrouble, type OutputSchema } from "../../activities/config/output-schema.ts";
import { reasonOf } from "../../activities/contract/errors.ts";
import { unreadable, usageError } from "../console/errors.ts";

/** @param given a file's name, or the schema itself. @throws ClientError (usage) */
export async function readOutputSchema(
  given: string | OutputSchema | undefined,
): Promise<OutputSchema | undefined> {
  if (given === undefined) return undefined;
  const schema = typeof given === "string" ? readSchemaFile(given) : given;
  const trouble = await schemaTrouble(schema);
  if (trouble === undefined) return schema;
  throw usageError(
    `${nameOf(given)} is not a JSON Schema that answers can be checked against: ${trouble}.`,
    "Use JSON Schema 2020-12, 2019-09, draft 7 or draft 6, with references only inside the document.",
  );
}

function readSchemaFile(path: string): OutputSchema {
  let text: string;
  try {
    text = readBoundedText(path, { pipes: true });
  } catch (error) {
    throw unreadable(`The output schema ${path}`, error);
  }
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch (error) {
    throw usageError(`The output schema ${path} is not JSON: ${reasonOf(error)}.`);
  }
  if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) return schema as OutputSchema;
  throw usageError(`The output schema ${path} is not a JSON object.`);
}

const nameOf = (given: string | OutputSchema): string =>
  typeof given === "string" ? `The output schema ${given}` : "The output schema";
