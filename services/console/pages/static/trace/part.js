// What an operation's or a call's part can do once scripts run: copy, unfold everything. On its own
// page, and in the panel of a cycle.

import { tell } from "../ask.js";

/** Show the buttons that need a script. */
export function dress() {
  for (const button of document.querySelectorAll(".copy[hidden], .unfold[hidden]")) button.hidden = false;
}

async function copy(button) {
  const { copy, copyOf } = button.dataset;
  const text = copyOf ? document.getElementById(copyOf).textContent : copy;
  try {
    await navigator.clipboard.writeText(text);
    tell("Copied.");
  } catch {
    tell("The browser does not let pages copy here.", "bad");
  }
}

function unfold(button) {
  const tree = button.closest("section").querySelector(".values");
  const all = tree.querySelectorAll("details");
  const open = [...all].some((each) => !each.open);
  for (const each of all) each.open = open;
  button.firstChild.textContent = open ? "Fold all" : "Expand all";
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".copy, .unfold");
  if (button) button.classList.contains("copy") ? copy(button) : unfold(button);
});
document.addEventListener("deskbus:refreshed", dress);
dress();
