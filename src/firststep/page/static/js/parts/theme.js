// Light or dark: as the system says, unless the button was used.

import { setText } from "./dom.js";

const KEPT = "firststep-theme";

export function mountTheme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const now = () => document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");
  const show = () => {
    const other = now() === "dark" ? "light" : "dark";
    setText(button, other === "dark" ? "Dark" : "Light");
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
  };
  const kept = localStorage.getItem(KEPT);
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  button.addEventListener("click", () => {
    const theme = now() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(KEPT, theme);
    show();
  });
  system.addEventListener("change", show);
  show();
}
