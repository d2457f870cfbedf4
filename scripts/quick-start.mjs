// Loaded ahead of all else (`node --import`): makes a start about 0.8 s shorter. Nothing depends on it.
import { enableCompileCache, registerHooks } from "node:module";
import { fileURLToPath } from "node:url";

// Compiled code and stripped types are kept from one start to the next.
enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/longhaul/compiled", import.meta.url)));

// drizzle-orm's package.json has 180 KB, and Node parses it anew for each of its 104 files: 0.6 s (measured 2026-11,
// Node 24.21). Its relative imports need no package.json: they are where they say, and all of them are modules.
registerHooks({
  resolve(specifier, context, next) {
    if (specifier.startsWith(".") && context.parentURL?.includes("/node_modules/drizzle-orm/") === true) {
      const url = new URL(specifier, context.parentURL).href;
      if (url.endsWith(".js") && !context.conditions.includes("require"))
        return { url, format: "module", shortCircuit: true };
    }
    return next(specifier, context);
  },
});
