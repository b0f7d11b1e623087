// Colours of the style sheet for what is drawn by script, and word of a change of theme.

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

/** Whether dark is shown now. */
export function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
}

/** Show the other theme, and remember it here. */
export function switchTheme() {
  root.dataset.theme = isDark() ? "light" : "dark";
  localStorage.setItem("deskbus-theme", root.dataset.theme);
  document.dispatchEvent(new Event("deskbus:theme"));
}

/** A custom property of the style sheet as the colour that it is now, such as colour("--good"). */
export function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  probe.hidden = true;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** Calls `draw` whenever other colours are in force. Canvas charts keep those they were drawn in. */
export function onTheme(draw) {
  document.addEventListener("deskbus:theme", draw);
  system.addEventListener("change", draw);
}
