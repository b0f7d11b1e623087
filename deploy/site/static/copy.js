// A button on each block of code. Of commands it copies what is typed: no prompts, remarks, output.
const SHELL = ".highlight-console, .highlight-sh, .highlight-bash, .highlight-none"
const REMARK = /(\S)\s+# .*/
const REMARK_BY_SPACE = /(\S)(\s+#|\s{2,}).*/ // of `deskbus` lines, as in the pages

const typed = (block) => {
  const lines = block.textContent.trimEnd().split("\n")
  if (!block.closest(SHELL)) return lines.join("\n")
  const prompted = lines.filter((line) => line.startsWith("$ "))
  return (prompted.length ? prompted.map((line) => line.slice(2)) : lines)
    .map((line) => line.replace(line.includes("deskbus ") ? REMARK_BY_SPACE : REMARK, "$1"))
    .join("\n")
}

for (const block of navigator.clipboard ? document.querySelectorAll("div.highlight pre") : []) {
  const button = document.createElement("button")
  button.className = "copy"
  button.type = "button"
  button.textContent = "copy"
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(typed(block))
    button.textContent = "copied"
    setTimeout(() => (button.textContent = "copy"), 1500)
  })
  block.parentElement.append(button)
}
