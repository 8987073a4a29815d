// The copy button of a console copies its commands, without prompts and output.
document.addEventListener("click", (event) => {
  const code = event.target.closest("button")?.closest(".highlight")?.querySelector("code")
  if (!code?.querySelector(".gp")) return
  event.stopImmediatePropagation()
  const commands = code.cloneNode(true)
  commands.querySelectorAll(".gp, .go").forEach((part) => part.remove())
  navigator.clipboard.writeText(commands.textContent.split("\n").filter((line) => line.trim()).join("\n"))
}, true)
