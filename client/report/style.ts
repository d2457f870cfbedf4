/** The report's style sheet: for paper, phones and dark mode. */
import { Html } from "./html.ts";

export const STYLE = new Html(`
:root { color-scheme: light dark; --ink: #1b1f24; --faint: #68737d; --line: #d8dee4; --paper: #fff; --soft: #f6f8fa; --blue: #1f6feb; --green: #1a7f37; --red: #cf222e; --amber: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #8b949e; --line: #30363d; --paper: #0d1117; --soft: #161b22; --blue: #58a6ff; --green: #3fb950; --red: #f85149; --amber: #d29922; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
.task { white-space: pre-wrap; } .faint, footer, article > header, dt { color: var(--faint); font-size: .85rem; }
dl { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; } dl div { min-width: 6rem; } dd { margin: 0; font-weight: 600; }
.result { background: var(--soft); border-left: 3px solid var(--green); padding: .5rem 1rem; overflow-wrap: anywhere; } .result.failed { border-color: var(--red); white-space: pre-wrap; }
svg { width: 100%; min-width: 36rem; height: auto; } svg text { fill: var(--faint); font-size: 11px; }
.grid { stroke: var(--line); } .trigger { stroke: var(--amber); stroke-dasharray: 6 4; } .round { stroke: var(--faint); opacity: .5; }
.input { fill: none; stroke: var(--blue); stroke-width: 2; } .cached { fill: var(--blue); opacity: .18; }
.scroll { overflow-x: auto; } .scroll table { white-space: nowrap; }
table { border-collapse: collapse; font-size: .85rem; } td, th { text-align: left; padding: .15rem .75rem .15rem 0; border-bottom: 1px solid var(--line); }
article { border-left: 3px solid var(--line); padding: .1rem 0 .1rem .75rem; margin: .5rem 0; } article.user { border-color: var(--blue); } article.system { border-color: var(--amber); }
.words { white-space: pre-wrap; margin: .2rem 0; } details { margin: .15rem 0; } summary { cursor: pointer; overflow-wrap: anywhere; }
.facts { color: var(--faint); font-size: .85rem; } .mark { color: var(--green); } .failed > summary .mark, .failed > summary .facts { color: var(--red); font-weight: 600; } .interrupted > summary .mark { color: var(--amber); }
.call:target, .call:target > summary { outline: 2px solid var(--blue); outline-offset: 2px; } .next { font-size: .85rem; }
.failures { border-left: 3px solid var(--red); padding-left: 1rem; } .failures h2 { color: var(--red); border: 0; margin-top: 1rem; } .failures li { overflow-wrap: anywhere; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; } a { color: var(--blue); } a.red { color: var(--red); font-weight: 600; }
:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
.markdown { overflow-wrap: anywhere; } .markdown p { margin: .4rem 0; } .markdown .heading { font-weight: 700; } .markdown ul, .markdown ol { margin: .3rem 0; padding-left: 1.4rem; } .markdown li p { margin: 0; } .markdown li.check { list-style: none; margin-left: -1.2rem; }
code { background: var(--soft); padding: 0 .2em; border-radius: 3px; font-size: .9em; overflow-wrap: anywhere; } blockquote { border-left: 3px solid var(--line); margin: .4rem 0; padding-left: .8rem; color: var(--faint); }
.todo { list-style: none; padding-left: .5rem; margin: .2rem 0; } .todo .now { font-weight: 600; }
img { display: block; max-width: 100%; height: auto; max-height: 30rem; margin: .4rem 0; border: 1px solid var(--line); }
.bar { min-width: 6rem; } .bar span { display: block; height: .6rem; background: var(--blue); opacity: .6; }
.counts { white-space: nowrap; font-size: .85rem; }
pre { background: var(--soft); padding: .5rem; overflow: auto; max-height: 30rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; margin: .25rem 0; }
.add { color: var(--green); } .del { color: var(--red); } .at { color: var(--blue); }
footer { margin: 3rem 0 1rem; overflow-wrap: anywhere; }
@media print { details > pre { max-height: none; } nav { display: none; } }
`);
