/** The images that the set-up makes. */

/**
 * The image of sandboxes by default, and of the container that sets up their firewall. Its number rises with what is in it,
 * so that an image made from an older list is not taken for it.
 */
export const DEFAULT_IMAGE = "longhaul-sandbox:4";
/** The same with Go, Rust and a JDK: made only if it is named. */
export const FULL_IMAGE = `${DEFAULT_IMAGE}-full`;
/** How a person names it, whatever its number. */
const FULL_NAME = "longhaul-sandbox:full";

/** The image that a person means by `name`; without one, the default. */
export const imageNamed = (name: string = DEFAULT_IMAGE): string => (name === FULL_NAME ? FULL_IMAGE : name);
