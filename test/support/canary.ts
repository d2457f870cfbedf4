/** The API key of scripted models; no stored text or log may contain it. */
export const CANARY = "sk-canary-5f1e2d3c4b5a69788796a5b4c3d2e1f0";
