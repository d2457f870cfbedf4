/** Sizes in settings: whole MiB or GiB. */
import { z } from "zod";

/** More digits would not fit into the 64 bits of the engine and the kernel. */
export const sizeSchema = z.string().regex(/^\d{1,7}(m|g)$/, "a number with m or g, such as 2g");

export const megabytes = (size: string): number => Number.parseInt(size) * (size.endsWith("g") ? 1_024 : 1);

export const bytesOf = (size: string): number => megabytes(size) * 2 ** 20;
