// The form is sent as a browser sends it, in the background: the page that answers has what was typed
// and what is wrong with it, and takes this one's place. Where nothing answers all of it stays.

import { tell } from "./ask.js";

const AWAY = "The desk does not answer. Pressed again it is one cycle; what you typed is still here.";

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.id !== "request") return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form));
  if (event.submitter?.name) body.set(event.submitter.name, event.submitter.value);
  form.inert = true;
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/html" } });
    if (answer.redirected) return location.assign(answer.url);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("request");
    if (!fresh) throw new Error(page.querySelector("h1")?.textContent);
    form.replaceWith(fresh);
    fresh.querySelector("[autofocus]")?.focus();
  } catch (error) {
    form.inert = false;
    tell(error instanceof TypeError || !error.message ? AWAY : error.message, "bad");
  }
});
