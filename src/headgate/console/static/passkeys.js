// Passkeys: shows the forms that need one, has the browser sign, and sends what it signed. Without this file, or in a
// browser that knows no passkeys, the password works.
const canParse = "PublicKeyCredential" in window && "parseRequestOptionsFromJSON" in PublicKeyCredential;
for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!canParse) continue;
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const problem = form.querySelector("[role=alert]");
    problem.hidden = true;
    try {
      const options = JSON.parse(form.dataset.passkey);
      const made = "user" in options
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
      form.elements.answer.value = JSON.stringify(made.toJSON());
      form.submit();
    } catch (error) {
      problem.textContent = error.name === "InvalidStateError"
        ? "This device has a passkey for Headgate already."
        : "The browser made no passkey answer. Try again, or use the password.";
      problem.hidden = false;
    }
  });
}
