// A whole row leads where its first link leads; with Ctrl, Cmd or the middle button into a new tab.
// Its links and fields stay what they are, and a text can be selected.

const OWN = "a, button, input, label, select, summary, details";

function linkOf(event) {
  const row = event.target.closest("tr.row");
  if (!row || event.target.closest(OWN) || !getSelection().isCollapsed) return null;
  return row.querySelector("a");
}

document.addEventListener("click", (event) => {
  const link = linkOf(event);
  if (!link) return;
  if (event.ctrlKey || event.metaKey) window.open(link.href, "_blank", "noopener");
  else location.assign(link.href);
});
document.addEventListener("auxclick", (event) => {
  const link = event.button === 1 && linkOf(event);
  if (link) window.open(link.href, "_blank", "noopener");
});
