"use strict";
// The page is complete without this script; with it, charts answer to pointer and keyboard, and tables can be sorted.
(() => {
  const WIDTH = 480; // of a chart, in its own units
  const NAMES = ["passes", "seconds", "primal", "dual", "gap"];

  function chart(root) {
    const records = JSON.parse(root.dataset.records);
    const slider = root.querySelector(".slider input");
    let along = Object.keys(records.x)[0];

    function place(mark, across, up) {
      const visible = across !== null && up !== null;
      mark.style.visibility = visible ? "visible" : "hidden";
      if (!visible) return;
      if (mark.tagName === "line") {
        mark.setAttribute("x1", across);
        mark.setAttribute("x2", across);
      } else {
        mark.setAttribute("cx", across);
        mark.setAttribute("cy", up);
      }
    }

    function show(k) {
      const texts = records.texts[k];
      NAMES.forEach((name, i) => { root.querySelector(`[data-value="${name}"]`).textContent = texts[i]; });
      slider.value = k;
      slider.setAttribute("aria-valuetext", NAMES.map((name, i) => `${name} ${texts[i]}`).join(", "));
      for (const figure of root.querySelectorAll("figure")) {
        const across = records.x[figure.dataset.along][k];
        place(figure.querySelector(".cursor"), across, 0);
        for (const dot of figure.querySelectorAll(".dot")) place(dot, across, records.y[dot.dataset.curve][k]);
      }
    }

    function nearest(svg, event) {
      const box = svg.getBoundingClientRect();
      const at = (event.clientX - box.left) * WIDTH / box.width;
      let best = 0, distance = Infinity;
      records.x[along].forEach((across, k) => {
        if (across !== null && Math.abs(across - at) < distance) [best, distance] = [k, Math.abs(across - at)];
      });
      return best;
    }

    function choose(name) {
      along = name;
      for (const figure of root.querySelectorAll("figure")) figure.hidden = figure.dataset.along !== name;
    }

    for (const svg of root.querySelectorAll(".panel svg[role]")) {
      for (const kind of ["pointermove", "pointerdown"]) {
        svg.addEventListener(kind, (event) => show(nearest(svg, event)));
      }
    }
    slider.addEventListener("input", () => show(Number(slider.value)));
    for (const radio of root.querySelectorAll(".switch input")) {
      radio.addEventListener("change", () => choose(radio.value));
      if (radio.checked) along = radio.value; // a reloaded page keeps its choice
    }
    choose(along);
    show(records.texts.length - 1);
  }

  function sortable(table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const numeric = head.dataset.kind === "number";
      head.querySelector("button").addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const descending = before === "none" ? numeric : before === "ascending";
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const value = (row) => row.cells[column].dataset.value;
        const order = numeric
          ? (a, b) => Number(value(a)) - Number(value(b))
          : (a, b) => value(a).localeCompare(value(b), undefined, { numeric: true });
        body.append(...[...body.rows].sort((a, b) => descending ? order(b, a) : order(a, b)));
      });
    });
    shorten(table, body.rows.length);
  }

  function shorten(table, rows) {
    const shown = Number(table.dataset.shown);
    if (rows <= shown) return;
    const button = document.createElement("button");
    const words = () => table.classList.contains("short") ? `Show all ${rows} rows` : `Show the first ${shown} rows`;
    button.type = "button";
    button.className = "more";
    table.classList.add("short");
    button.textContent = words();
    button.addEventListener("click", () => {
      table.classList.toggle("short");
      button.textContent = words();
    });
    table.parentElement.after(button);
  }

  document.documentElement.classList.add("scripted");
  document.querySelectorAll(".chart").forEach(chart);
  document.querySelectorAll("table.sortable").forEach(sortable);
})();
