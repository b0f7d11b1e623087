// The kill switch of the top bar. Without it the button leads to the same on the portfolio's page.

import { ask, tell } from "./ask.js";
import { refresh } from "./live.js";

/** `Sending stopped: 2 orders cancelled, 1 may still be filled.`; without a broker's orders the plain words. */
function came(answer) {
  const { cancelled = 0, pending = 0 } = answer ?? {};
  if (!cancelled && !pending) return "Buys are halted.";
  return `Sending stopped: ${cancelled} ${cancelled === 1 ? "order" : "orders"} cancelled, ${pending} may still be filled.`;
}

async function standing(note) {
  try {
    const { halts } = await ask("GET", "/halts");
    note.textContent = halts.map((each) => `Halted already: ${each.account ?? "every account"}.`).join(" ");
  } catch (error) {
    note.textContent = error.message;
  }
}

function open() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = document.getElementById("halt-form").content.firstElementChild.cloneNode(true);
  document.body.append(dialog);
  dialog.addEventListener("close", async () => {
    const given = [...new FormData(dialog.querySelector("form"))].filter(([, value]) => value !== "");
    const { returnValue } = dialog;
    dialog.remove();
    if (returnValue !== "halt") return;
    try {
      tell(came(await ask("POST", "/halts", Object.fromEntries(given))));
      await refresh();
    } catch (error) {
      tell(error.message, "bad");
    }
  });
  dialog.showModal();
  dialog.querySelector("[name=reason]").focus();
  standing(dialog.querySelector("[role=status]"));
}

document.getElementById("halt-now")?.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  open();
});
document.addEventListener("deskbus:halt", open);
