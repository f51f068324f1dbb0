
"use strict";
(() => {
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const turns = [...document.querySelectorAll(".turn")];
  const stage = document.querySelector(".stage");
  const dialog = document.querySelector("dialog");
  const place = document.getElementById("place");
  const previous = document.getElementById("previous");
  const next = document.getElementById("next");
  const marks = document.getElementById("marks");
  let shown = -1;

  /* Pictures are made from their blocks when their turn is looked at. */
  const fill = (turn) => {
    for (const image of turn.querySelectorAll("img[data-picture]:not([src])")) {
      image.src = "data:image/png;base64," + document.getElementById("picture-" + image.dataset.picture).textContent;
    }
  };

  const show = (at, focus) => {
    at = Math.max(0, Math.min(turns.length - 1, at));
    if (turns.length === 0) return;
    fill(turns[at]);
    /* What has the focus would be hidden. */
    if (at !== shown && shown >= 0 && turns[shown].contains(document.activeElement)) focus = true;
    if (at !== shown) {
      turns.forEach((turn, i) => { turn.hidden = i !== at; });
      tabs.forEach((tab, i) => {
        tab.setAttribute("aria-selected", String(i === at));
        tab.tabIndex = i === at ? 0 : -1;
      });
      shown = at;
      previous.disabled = at === 0;
      next.disabled = at === turns.length - 1;
      place.textContent = at + 1 + " of " + turns.length;
      /* Not while the page loads: its end would move the focus to what the address names. */
      if (document.readyState === "complete") {
        try { history.replaceState(null, "", "#" + turns[at].id); } catch { /* A page from a file may not be allowed to. */ }
      }
      if (at + 1 < turns.length) setTimeout(() => fill(turns[at + 1]), 50);
    }
    if (focus) tabs[at].focus({ preventScroll: true });
    const list = document.querySelector(".timeline");
    const [tab, box] = [tabs[at].getBoundingClientRect(), list.getBoundingClientRect()];
    if (tab.top < box.top + 8) list.scrollTop += tab.top - box.top - 8;
    if (tab.bottom > box.bottom - 8) list.scrollTop += tab.bottom - box.bottom + 8;
  };

  const view = (name) => {
    stage.classList.remove("view-both", "view-before", "view-after");
    stage.classList.add("view-" + name);
    for (const button of document.querySelectorAll("[data-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.view === name));
    }
  };
  const toggleMarks = () => {
    const off = document.body.classList.toggle("no-marks");
    marks.setAttribute("aria-pressed", String(!off));
  };

  tabs.forEach((tab, i) => tab.addEventListener("click", (event) => {
    event.preventDefault();
    show(i, true);
  }));
  previous.addEventListener("click", () => show(shown - 1));
  next.addEventListener("click", () => show(shown + 1));
  marks.addEventListener("click", toggleMarks);
  for (const button of document.querySelectorAll("[data-view]")) {
    button.addEventListener("click", () => view(button.dataset.view));
  }
  for (const details of document.querySelectorAll("details[data-tree]")) {
    details.addEventListener("toggle", () => {
      const text = details.querySelector("pre");
      if (!details.open || text.textContent) return;
      const bytes = Uint8Array.from(atob(document.getElementById("tree-" + details.dataset.tree).textContent), (c) => c.charCodeAt(0));
      text.textContent = new TextDecoder().decode(bytes);
    });
  }
  for (const picture of document.querySelectorAll(".picture")) {
    picture.addEventListener("click", () => {
      const copy = picture.cloneNode(true);
      const image = copy.querySelector("img");
      /* As large as the window has room for, at least its own size; by whole steps, so that pixels stay what they are. */
      const [width, height] = [Number(image.getAttribute("width")), Number(image.getAttribute("height"))];
      const fit = Math.min((innerWidth * 0.96) / width, (innerHeight * 0.94) / height);
      const factor = fit >= 2 ? Math.min(4, Math.floor(fit)) : fit > 1.2 ? fit : 1;
      image.style.width = width * factor + "px";
      image.style.height = "auto";
      copy.classList.toggle("enlarged", factor >= 2);
      copy.setAttribute("aria-label", "Close");
      dialog.replaceChildren(copy);
      dialog.showModal();
    });
  }
  dialog.addEventListener("click", () => dialog.close());

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || dialog.open) return;
    /* What can be scrolled by keys keeps them. */
    if (event.target.closest("pre")) return;
    const inList = event.target.closest('[role="tab"]') !== null;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: inList ? -1 : 0, ArrowDown: inList ? 1 : 0 }[event.key];
    if (step) show(shown + step, inList);
    else if (event.key === "Home") show(0, inList);
    else if (event.key === "End") show(turns.length - 1, inList);
    else if (event.key === "s") view("both");
    else if (event.key === "b") view("before");
    else if (event.key === "a") view("after");
    else if (event.key === "m") toggleMarks();
    else return;
    event.preventDefault();
  });
  addEventListener("hashchange", () => {
    const at = turns.findIndex((turn) => "#" + turn.id === location.hash);
    if (at < 0) return;
    show(at);
    /* It was hidden when the browser looked for it. */
    turns[at].scrollIntoView();
  });

  const toolbar = document.querySelector(".toolbar");
  if (turns.length === 0) toolbar.hidden = true;
  /* It has two lines where the page is narrow. */
  new ResizeObserver(() => stage.style.setProperty("--toolbar", toolbar.offsetHeight + "px")).observe(toolbar);
  show(Math.max(0, turns.findIndex((turn) => "#" + turn.id === location.hash)), true);
  scrollTo(0, 0);
})();
