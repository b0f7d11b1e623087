// Forms that call the API: `data-post` is the path below /api/v1, the fields are the body, empty ones
// left out. What came of it is told, and the page is read again, or `data-then` is gone to.

import { ask, tell } from "./ask.js";
import { refresh } from "./live.js";

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.post) return;
  event.preventDefault();
  const given = [...new FormData(form)].filter(([, value]) => value !== "");
  const buttons = form.querySelectorAll("button");
  const lock = (on) => buttons.forEach((each) => (each.disabled = on));
  lock(true);
  try {
    const body = given.length || form.dataset.body !== undefined ? Object.fromEntries(given) : undefined;
    const answer = (await ask("POST", form.dataset.post, body)) ?? {};
    tell(answer.verdict || answer.message || form.dataset.said || "Done.");
    if (form.dataset.then) return setTimeout(() => location.assign(form.dataset.then), 900);
    // A region in which somebody types is left alone: that is over before the page is read again.
    form.reset();
    if (form.contains(document.activeElement)) document.activeElement.blur();
    form.closest("details")?.removeAttribute("open");
    await refresh();
  } catch (error) {
    tell(error.message, "bad");
  }
  lock(false);
});

// A form that only chooses what is shown goes there at once.
document.addEventListener("change", (event) => event.target.closest("form[data-choose]")?.requestSubmit());
