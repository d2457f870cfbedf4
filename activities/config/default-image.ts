/** The default image of the sandboxes. */

/**
 * The image that the set-up makes: of sandboxes by default, and of the container that puts up their walls. Its number
 * rises with what is in it, so that an image made from an older list is not taken for it.
 */
export const DEFAULT_IMAGE = "longhaul-sandbox:3";
