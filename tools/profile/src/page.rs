//! What the pages of reports have in common: their look, and text in them.

/// The style sheet of a page, which the flame graph's page uses as well.
pub const STYLE: &str = "
:root{color-scheme:light dark;--page:#fff;--panel:#f6f7f9;--ink:#1b1f24;--soft:#5c6570;--grid:#dde1e6;
--c1:#2563c9;--c2:#c2571a;--c3:#8a939d;--good:#1a7f45;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--page:#14171b;--panel:#1d2126;--ink:#e8eaed;--soft:#9aa3ad;
--grid:#31373e;--c1:#7aa9f7;--c2:#f0965a;--c3:#77808a;--good:#5fc98b;--bad:#f28b82}}
*{box-sizing:border-box}body{margin:0 auto;padding:2rem 1rem 4rem;max-width:52rem;background:var(--page);
color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.35rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:2.2rem 0 .6rem}
p{margin:.3rem 0}.soft{color:var(--soft)}
.banner{border-left:4px solid var(--good);background:var(--panel);padding:.7rem 1rem;margin:1.2rem 0}
.banner.bad{border-color:var(--bad)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.7rem}
.card{background:var(--panel);border-radius:.5rem;padding:.7rem 1rem}
.card b{display:block;font-size:1.35rem;font-variant-numeric:tabular-nums}.card span{color:var(--soft);font-size:.85rem}
figure{margin:1.4rem 0;overflow-x:auto}figcaption{font-weight:600}svg{width:100%;min-width:22rem}
.key{font-weight:400;margin-left:.8rem}.key::before{content:'';display:inline-block;width:1.1em;height:3px;
margin-right:.4em;vertical-align:middle;background:currentColor}
.c1{color:var(--c1);stroke:var(--c1)}.c2{color:var(--c2);stroke:var(--c2)}.c3{color:var(--c3);stroke:var(--c3)}
span.c1,span.c2,span.c3{stroke:none}
.line{stroke-width:2}.dot{fill:currentColor;stroke:none;opacity:0}.dot:hover{opacity:1}
.grid{stroke:var(--grid)}.tick{fill:var(--soft);font-size:12px}.end{text-anchor:end}.middle{text-anchor:middle}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--grid);text-align:right}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}
";

/// Text for HTML, attributes included.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
