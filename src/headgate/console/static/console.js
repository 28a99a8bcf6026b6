// Copy buttons, and the current entry of the navigation on a narrow screen. Everything else works without this file.
document.querySelector(".side nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent.trim());
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
});
