/** The images that the set-up builds. */

/**
 * The default image of sandboxes, and of the container that sets up their firewall. Its number increases with its
 * contents, so that an image built from an older list is not mistaken for it.
 */
export const DEFAULT_IMAGE = "longhaul-sandbox:4";
/** The default image plus Go, Rust and a JDK: built only if it is named. */
export const FULL_IMAGE = `${DEFAULT_IMAGE}-full`;
/** The full image's name as a person types it, whatever its number. */
const FULL_NAME = "longhaul-sandbox:full";

/** The image that a person means by `name`; without one, the default. */
export const imageNamed = (name: string = DEFAULT_IMAGE): string => (name === FULL_NAME ? FULL_IMAGE : name);
