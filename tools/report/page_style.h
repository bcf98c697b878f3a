// The style of the report's page. Colours differ in lightness, and marks in shape, so that no
// meaning depends on hues; blue and orange look different to colour-blind people.
#ifndef KINGLET_TOOLS_REPORT_PAGE_STYLE_H_
#define KINGLET_TOOLS_REPORT_PAGE_STYLE_H_

namespace kinglet {

inline constexpr const char* kPageStyle = R"(
:root{color-scheme:light dark;--paper:#fff;--ink:#1a1c1e;--soft:#555b61;--line:#d3d8dc;
--panel:#f5f6f7;--bar:#0b6bb5;--mark:#b8480a;--k0:#fff;--k1:#fdf0dd;--k2:#fbdcb2;--k3:#f3b76e;
--k4:#e0913f;--k5:#a34e0c;--k6:#642803;--dark:#1a1c1e;--light:#fff}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e8eaec;--soft:#a9b0b7;
--line:#3b4147;--panel:#1d2125;--bar:#58a9e6;--mark:#f2a45f;--k0:#14171a;--k1:#2b241b;--k2:#46351f;
--k3:#654621;--k4:#85561a;--k5:#d9964a;--k6:#ffd9a8;--dark:#e8eaec;--light:#14171a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif;
overflow-wrap:anywhere}
header,main,footer{max-width:72rem;margin:0 auto;padding:0 1rem}
h1{font-size:1.5rem;margin:1.5rem 0 0}
h2{font-size:1.15rem;margin:0 0 .25rem}
h3{font-size:1rem;margin:.75rem 0 .25rem}
p{margin:.25rem 0 .75rem}
.verdict{font-size:1.1rem;font-weight:600}
.soft,.legend,figcaption,footer,summary{color:var(--soft);font-size:.875rem}
main{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));
padding-top:1rem;align-items:start}
section{background:var(--panel);border:1px solid var(--line);border-radius:.5rem;
padding:1rem;min-width:0}
.wide,.two section{grid-column:1/-1}
.models{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr))}
.models>*{min-width:0}
figure{margin:0 0 .5rem}
figure>svg{display:block;width:100%;max-width:34rem;height:auto}
svg text{font:11px system-ui,sans-serif;fill:var(--ink)}
@media (min-width:40rem){svg text{font-size:9px}}
svg .value{text-anchor:end;font-variant-numeric:tabular-nums}
.track{fill:var(--line)}.bar{fill:var(--bar)}
.mark{fill:var(--mark);stroke:var(--panel);stroke-width:1}
.ring{fill:var(--panel);stroke:var(--bar);stroke-width:2}
.cross{stroke:var(--ink);stroke-width:1.6;fill:none}.roofline{fill:var(--ink)}
.curve{fill:none;stroke-width:1.8}.c0{stroke:var(--bar)}.c1{stroke:var(--mark)}
.c2{stroke:var(--bar);stroke-dasharray:4 3}.c3{stroke:var(--mark);stroke-dasharray:4 3}
.cx{stroke:var(--soft);stroke-width:.8;opacity:.6}
.d0{fill:var(--bar)}.d1{fill:var(--mark)}.dot{r:2.2px}
.key{width:1rem;height:1rem;vertical-align:-.2rem;margin-right:.25rem}
.legend span{white-space:nowrap;margin-right:.75rem}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.5rem;
margin:.5rem 0}
.facts div{border-left:3px solid var(--bar);padding-left:.5rem}
.facts dt{color:var(--soft);font-size:.8125rem}
.facts dd{margin:0;font-size:1.25rem;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;max-width:100%;max-height:30rem;overflow-y:auto}
table{border-collapse:collapse;font-size:.8125rem;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .5rem;text-align:right;border-bottom:1px solid var(--line);
overflow-wrap:normal;unicode-bidi:isolate}
@media (max-width:40rem){th,td{padding:.2rem .25rem}}
th:first-child{text-align:left}
thead th{color:var(--soft);font-weight:600;position:sticky;top:0;background:var(--panel)}
tbody th{font-weight:400}
details{margin:.25rem 0}
summary{cursor:pointer}
code{font-size:.8125rem}
.passage{line-height:2.1}
.w{padding:.15rem .2rem;border-radius:.2rem;cursor:help;unicode-bidi:isolate;outline-offset:1px}
.k0{background:var(--k0);color:var(--dark)}.k1{background:var(--k1);color:var(--dark)}
.k2{background:var(--k2);color:var(--dark)}.k3{background:var(--k3);color:var(--dark)}
.k4{background:var(--k4);color:var(--dark)}.k5{background:var(--k5);color:var(--light)}
.k6{background:var(--k6);color:var(--light)}
.u{text-decoration:underline dotted}
.scale span{display:inline-block;padding:0 .4rem;border:1px solid var(--line)}
.h{display:none}
.w:hover,.w:focus{outline:2px solid var(--bar)}
.w:hover>.h,.w:focus>.h{display:block;position:fixed;left:0;right:0;bottom:0;z-index:1;
max-height:45vh;overflow:auto;padding:.75rem 1rem;background:var(--paper);color:var(--ink);
border-top:2px solid var(--bar);font-size:.875rem;line-height:1.5}
.w:hover>.h{z-index:2}
.h b{unicode-bidi:isolate}
footer{padding-top:1rem;padding-bottom:2rem}
@media print{*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
main{display:block}section{border:0;padding:0;margin:0 0 1rem}figure,tr{break-inside:avoid}
.w:hover>.h,.w:focus>.h{display:none}.w:hover,.w:focus{outline:0}.scroll{max-height:none}
.models{grid-template-columns:repeat(auto-fit,minmax(8rem,1fr))}}
)";

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_PAGE_STYLE_H_
