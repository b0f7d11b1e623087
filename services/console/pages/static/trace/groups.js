// Calls of one name that follow one another are folded into one row, until they are asked for.

const open = new Set();

function rowsOf(head) {
  const rows = [];
  for (let next = head.nextElementSibling; next?.classList.contains("within"); next = next.nextElementSibling) {
    rows.push(next);
  }
  return rows;
}

const nameOf = (head) => rowsOf(head)[0]?.querySelector("a.opens")?.getAttribute("href") ?? "";

function fold() {
  for (const button of document.querySelectorAll(".fold-calls")) {
    const head = button.closest(".row");
    const isOpen = open.has(nameOf(head));
    button.hidden = false;
    button.setAttribute("aria-expanded", String(isOpen));
    button.firstChild.textContent = isOpen ? "Fold" : "Show each";
    for (const row of rowsOf(head)) row.hidden = !isOpen;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".fold-calls");
  if (!button) return;
  const name = nameOf(button.closest(".row"));
  open.has(name) ? open.delete(name) : open.add(name);
  fold();
});
document.addEventListener("deskbus:refreshed", fold);
fold();
