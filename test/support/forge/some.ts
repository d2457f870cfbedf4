/** Some of a published type's fields, at any depth: `{…} satisfies Some<T>` compiles only with fields that exist, of their types. */
export type Some<T> = T extends readonly (infer Item)[]
  ? readonly Some<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: Some<T[Key]> }
    : T;
