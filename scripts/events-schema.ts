/** `npm run events-schema`: writes docs/events.schema.json from the types of the events. */
import { writeFile } from "node:fs/promises";
import { eventsSchema } from "../activities/store/events-schema.ts";

const target = new URL("../docs/events.schema.json", import.meta.url);
await writeFile(target, `${JSON.stringify(eventsSchema(), undefined, 2)}\n`);
