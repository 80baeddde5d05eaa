#include "tools/html/sections.h"

namespace laneshift::tools {

const char* ReportStyle() {
  return R"css(
:root{--paper:#fff;--ink:#1f2933;--faint:#667380;--line:#d9dfe5;--panel:#f5f7fa;--shade:#0003;--mark:#fff3bf;
--c0:#2f6fb7;--c1:#d9730d;--c2:#2f9e6e;--c3:#8a56c2;--c4:#c2416c;--c5:#8a7a1f;--c6:#2b95a8;--c7:#7a6552;--c8:#4d7c0f;--c9:#0f766e;--c10:#be5a38;--c11:#5b5fc7;--wait:#c8d0d8;--idle:#e3e7eb}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e3e8ed;--faint:#94a1ad;--line:#343c45;--panel:#1d232a;--shade:#fff3;--mark:#4d431a;
--c0:#5b9be0;--c1:#eb9a4a;--c2:#55c293;--c3:#b38ae0;--c4:#e07a9c;--c5:#c2b04f;--c6:#5cc0d1;--c7:#b39a83;--c8:#a3c95a;--c9:#4cc3b5;--c10:#e59a7a;--c11:#9a9df0;--wait:#4b5560;--idle:#2b323a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
header,main{max-width:1180px;margin:0 auto;padding:0 16px}
header{padding-top:20px}
h1{font-size:21px;margin:0 0 8px;overflow-wrap:anywhere}
h2{font-size:18px;margin:0 0 10px}
h3{font-size:15px;margin:14px 0 6px}
nav{font-size:13px;line-height:1.9}
nav a{margin-right:10px;white-space:nowrap}
a{color:var(--c0)}
section{border-top:1px solid var(--line);padding:18px 0}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:0}
.facts dt{color:var(--faint)}
.facts dd{margin:0;overflow-wrap:anywhere}
.note,.legend{font-size:13px;color:var(--faint)}
.legend span{margin-right:14px;white-space:nowrap;display:inline-block}
.swatch{width:11px;height:11px;margin-right:5px}
.scroll{overflow-x:auto;background:linear-gradient(to right,var(--paper) 30%,transparent) left/30px 100% no-repeat local,
linear-gradient(to left,var(--paper) 30%,transparent) right/30px 100% no-repeat local,
linear-gradient(to right,var(--shade),transparent) left/10px 100% no-repeat scroll,
linear-gradient(to left,var(--shade),transparent) right/10px 100% no-repeat scroll}
.bar{display:flex;height:34px;overflow:hidden;border-radius:3px}
.bar span{color:var(--paper);font-size:12px;line-height:34px;text-align:center;overflow:hidden;min-width:2px}
rect[data-tile]{cursor:pointer}
details.chosen>summary{background:var(--mark);color:var(--ink)}
pre em{color:var(--c2);font-style:normal}
.long{max-height:480px;overflow:auto}
svg{display:block;width:100%;height:auto}
.swatch{display:inline;}
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
svg text.faint{fill:var(--faint);font-size:11px}
svg text.strong{font-weight:600}
svg text.on{fill:var(--paper);font-size:11px;pointer-events:none}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}.c7{fill:var(--c7)}.c8{fill:var(--c8)}.c9{fill:var(--c9)}.c10{fill:var(--c10)}.c11{fill:var(--c11)}
.wait{fill:var(--wait)}.idle,.empty{fill:var(--idle)}.allocated{fill:var(--wait)}
.bar .c0{background:var(--c0)}.bar .c1{background:var(--c1)}.bar .c2{background:var(--c2)}.bar .c3{background:var(--c3)}.bar .c4{background:var(--c4)}.bar .c5{background:var(--c5)}.bar .c6{background:var(--c6)}.bar .c7{background:var(--c7)}
.floor{fill:none;stroke:var(--c2);stroke-width:2.5}.slab{stroke:var(--paper);stroke-width:.8}
line,path{stroke:var(--line);fill:none}
.axis,.life,.flow{stroke:var(--faint)}.life{stroke-dasharray:3 4}
.flow{stroke:var(--c0);stroke-width:1.6}.back{stroke:var(--c1);stroke-width:1.2;stroke-dasharray:4 3}.head{fill:var(--faint);stroke:none}
.sample{fill:var(--c1);opacity:.6}.dim{fill:var(--faint);opacity:.5}
.roof{stroke:var(--ink);stroke-width:1.6}
.role{fill:var(--panel);stroke:var(--line)}.slot{fill:var(--c0);opacity:.55}.ring{fill:none;stroke:var(--c0)}
table{border-collapse:collapse;font-size:13px;margin:10px 0}
th,td{text-align:left;padding:3px 12px 3px 0;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
th{color:var(--faint);font-weight:600}
.long th{position:sticky;top:0;background:var(--paper)}
.n{text-align:right}
.sortable th{cursor:pointer}
tr.marked td{background:var(--mark)}
details{margin:6px 0}
summary{cursor:pointer;color:var(--faint)}
pre{font:12px/1.45 ui-monospace,monospace;background:var(--panel);padding:10px;margin:0;overflow:auto;max-height:70vh}
pre i{font-style:normal;display:inline}
pre i.lit{background:var(--mark)}
.code{display:grid;grid-template-columns:1fr 1fr;gap:12px}
.code pre{max-height:52vh}
.code>div{min-width:0}
input[type=range]{width:60%}
.lanes{display:grid;grid-template-columns:repeat(32,1fr);gap:1px;min-width:1080px;font-size:10px}
.lanes b{font-weight:400;text-align:center;padding:4px 0;color:#1f2933;white-space:nowrap}
.pixel{background:#bfdbfe}.zero{background:#fde68a}.masked{background:#ddd6fe}.dropped{background:#cbd2d9}.fresh{background:#86efac}.stale{background:#fca5a5}
.lane-pixel{fill:#bfdbfe}.lane-zero{fill:#fde68a}.lane-masked{fill:#ddd6fe}.lane-dropped{fill:#cbd2d9}.lane-fresh{fill:#86efac}.lane-stale{fill:#fca5a5}
@media (max-width:760px){.code{grid-template-columns:1fr}.facts{grid-template-columns:1fr;gap:0}.facts dd{margin-bottom:8px}body{font-size:14px}}
@media print{svg{min-width:0!important}.scroll{overflow:visible;background:none}table{font-size:10px}th,td{white-space:normal}nav,input,output{display:none}.tap[hidden]{display:block!important}pre,.long{max-height:none;overflow:visible;white-space:pre-wrap}section{break-inside:avoid-page}#code,#schedules{break-inside:auto}}
)css";
}

const char* ReportScript() {
  return R"js(
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const rows = [...table.tBodies[0].rows];
    const key = row => row.cells[column].textContent;
    const number = head.classList.contains("n");
    const up = head.dataset.up !== "1";
    heads.forEach(other => delete other.dataset.up);
    head.dataset.up = up ? "1" : "0";
    const value = row => key(row) === "" ? Infinity : parseFloat(key(row));
    rows.sort((a, b) => (number ? value(a) - value(b) : key(a).localeCompare(key(b))) * (up ? 1 : -1));
    table.tBodies[0].append(...rows);
  }));
}
const taps = [...document.querySelectorAll(".tap")];
const slider = document.getElementById("tap");
if (slider) slider.addEventListener("input", () => {
  taps.forEach((tap, i) => { tap.hidden = i !== Number(slider.value); });
  document.getElementById("tap-name").value = taps[Number(slider.value)].dataset.name;
});
const tiles = [...document.querySelectorAll("details[data-tile]")];
document.querySelectorAll("rect[data-tile]").forEach(slot => slot.addEventListener("click", () => tiles.forEach(tile => {
  const chosen = tile.dataset.tile === slot.dataset.tile;
  tile.classList.toggle("chosen", chosen);
  tile.open = chosen;
})));
const sides = ["program-text", "llvm-text", "ptx-text", "sass-text"].map(id => document.getElementById(id)).filter(Boolean);
const mark = (event, show) => {
  const line = event.target.closest("i[data-l]");
  if (!line) return;
  sides.forEach(side => {
    side.querySelectorAll("i.lit").forEach(other => other.classList.remove("lit"));
    const same = side.querySelectorAll('i[data-l="' + line.dataset.l + '"]');
    same.forEach(other => other.classList.add("lit"));
    if (show && same.length && !side.contains(line)) side.scrollTop += same[0].getBoundingClientRect().top - side.getBoundingClientRect().top - 40;
  });
};
sides.forEach(side => {
  side.addEventListener("mouseover", event => mark(event, false));
  side.addEventListener("click", event => mark(event, true));
});
)js";
}

}  // namespace laneshift::tools
