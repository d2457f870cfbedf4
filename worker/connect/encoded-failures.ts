/** Failures whose words and stacks go through the codec, if there is one; inside the workflow too. */
import { DefaultFailureConverter } from "@temporalio/common";

/** The name is Temporal's. */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
