// Runs before anything is drawn: the theme that was chosen here last time, else the system's.
{
  const chosen = localStorage.getItem("deskbus-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
}
