// A cycle's page: cancelling it, answering its proposals, its tree with the panel beside it.

import "./approvals.js";
import { ask, tell } from "./ask.js";
import { refresh } from "./live.js";
import "./trace/groups.js";
import "./trace/panel.js";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("#cancel");
  if (!button) return;
  if (!confirm("Cancel this cycle? Its results stay on record; no order is placed.")) return;
  button.disabled = true;
  try {
    await ask("DELETE", `/cycles/${button.dataset.cycle}?reason=cancelled%20in%20the%20console`);
    tell("The cycle is cancelled.");
    button.blur();
    await refresh();
  } catch (error) {
    tell(error.message, "bad");
    button.disabled = false;
  }
});
