// On a narrow window a table that is too wide stands as blocks, one a row: each cell after the first
// gets its column's name. A table that fits stays as it is.

const UNKNOWN = "–";
const NARROW = matchMedia("(max-width: 640px)");

function lay() {
  for (const table of document.querySelectorAll(".scroll > table")) {
    table.classList.remove("blocks");
    const box = table.parentElement;
    if (!NARROW.matches || box.scrollWidth <= box.clientWidth) continue;
    name(table);
    table.classList.add("blocks");
  }
}

function name(table) {
  const heads = [...table.querySelectorAll("thead th")].map((each) => each.textContent.replace(/[↑↓]/, "").trim());
  for (const row of table.querySelectorAll("tbody tr")) {
    if (row.cells.length !== heads.length) continue;
    for (const cell of row.cells) {
      const says = cell.textContent.trim();
      if ((says && says !== UNKNOWN) || cell.querySelector("input, button")) cell.dataset.column = heads[cell.cellIndex];
    }
  }
}

lay();
document.addEventListener("deskbus:refreshed", lay);
document.addEventListener("toggle", lay, true); // what was folded away could not be measured
addEventListener("resize", lay);
