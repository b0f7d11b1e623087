// The token is given once; the cookie that comes back stands for it.

import { ask } from "./ask.js";

const form = document.getElementById("login");
const wrong = document.getElementById("wrong");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  wrong.textContent = "";
  try {
    await ask("POST", "/session", { token: form.elements.token.value });
    location.assign(form.dataset.next);
  } catch (error) {
    wrong.textContent = error.message;
    form.elements.token.select();
  }
});
