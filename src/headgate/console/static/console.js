// Copy buttons, dropped files, newer entries of the log, and the current entry of the navigation on a narrow screen.
// Everything else works without this file, and files can be chosen without it.
const current = document.querySelector(".side nav [aria-current]");
// Not scrollIntoView: that moves where the first Tab goes, past the link that skips the menu.
if (current) current.parentElement.scrollLeft = current.offsetLeft - current.parentElement.offsetLeft - 40;

// "/" goes to the search, from everywhere but where a person types.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  const search = document.getElementById("q");
  if (search) search.focus(); else location.assign("/console/search");
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent.trim());
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
});

// The newest part of the log asks for newer entries, unless one of its conversations is open or the page is hidden.
setInterval(() => {
  const log = document.querySelector("[data-live]");
  if (log && !document.hidden && !log.querySelector("details[open]")) htmx.trigger(log, "newer");
}, 3000);

// All files below an entry that was dropped, each with its path.
async function filesOf(entry) {
  if (entry.isFile) {
    const file = await new Promise((done, fail) => entry.file(done, fail));
    return [[file, entry.fullPath.slice(1)]];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return found;
    for (const one of some) found.push(...await filesOf(one));
  }
}

function send(form, files) {
  const body = new FormData();
  body.append("form_key", form.elements.form_key.value);
  for (const [file, path] of files) body.append("file", file, path);
  const request = new XMLHttpRequest();
  const bar = form.querySelector("progress");
  form.querySelector(".sending").hidden = false;
  request.upload.addEventListener("progress", (event) => { bar.value = event.loaded / event.total; });
  request.addEventListener("load", () => {
    if (request.status < 400) { location.assign(request.responseURL); return; }
    const answer = new DOMParser().parseFromString(request.responseText, "text/html");
    document.querySelector("main").replaceWith(answer.querySelector("main"));
  });
  request.open("POST", form.action);
  request.send(body);
}

for (const form of document.querySelectorAll("[data-drop]")) {
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", async (event) => {
    event.preventDefault();
    form.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((one) => one.webkitGetAsEntry()).filter(Boolean);
    const files = (await Promise.all(entries.map(filesOf))).flat();
    if (files.length) send(form, files);
  });
  form.addEventListener("submit", (event) => {
    const chosen = [...form.querySelectorAll("[type=file]")].flatMap((one) => [...one.files]);
    if (!chosen.length) return;
    event.preventDefault();
    send(form, chosen.map((one) => [one, one.webkitRelativePath || one.name]));
  });
}
