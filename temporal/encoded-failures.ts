/** Passes the messages and stacks of failures through the codec, if there is one; also inside the workflow. */
import { DefaultFailureConverter } from "@temporalio/common";

/** The name is Temporal's. */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
