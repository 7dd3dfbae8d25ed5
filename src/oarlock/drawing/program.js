"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const root = document.querySelector(".oarlock");
  const bar = document.createElement("div");
  bar.className = "ol-tools";
  const all = () => root.querySelectorAll("details.ol-section, details.ol-block, details.ol-layer");
  const button = (text, act) => {
    const made = document.createElement("button");
    made.textContent = text;
    made.addEventListener("click", act);
    bar.append(made);
  };
  button("Unfold all", () => all().forEach((box) => (box.open = true)));
  button("Fold all", () => all().forEach((box) => (box.open = box.classList.contains("ol-section"))));
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Find an operator or a name";
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    root.querySelectorAll(".ol-item.ol-found").forEach((item) => item.classList.remove("ol-found"));
    if (wanted.length < 2) return;
    let first = null;
    for (const head of root.querySelectorAll(".ol-op > .ol-head, .ol-feed > .ol-head, .ol-input > .ol-head")) {
      if (!head.dataset.tip.toLowerCase().includes(wanted)) continue;
      const item = head.parentElement;
      item.classList.add("ol-found");
      for (let box = item.parentElement; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
      first = first || item;
    }
    if (first) first.scrollIntoView({ block: "center" });
  });
  bar.append(search);
  root.querySelector(".ol-header").append(bar);
  // A name that is pointed at is marked wherever it is, and so is the line that defines it.
  const mark = (event, on) => {
    const link = event.target.closest("a[href^='#']");
    if (!link) return;
    const id = link.getAttribute("href").slice(1);
    document.getElementById(id)?.classList.toggle("ol-defines", on);
    root.querySelectorAll("a").forEach((other) => other.getAttribute("href") === "#" + id && other.classList.toggle("ol-same", on));
  };
  root.addEventListener("mouseover", (event) => mark(event, true));
  root.addEventListener("mouseout", (event) => mark(event, false));
});
