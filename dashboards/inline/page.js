// Sorting of tables and highlighting of a chart's line. Everything can be read without it.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortRows(table.tBodies[0], column, ascending);
    });
  });
}

function sortRows(body, column, ascending) {
  const keyed = [...body.rows].map((row) => {
    const cell = row.cells[column];
    const figure = cell.dataset.value;
    return { row, number: figure === undefined ? null : Number(figure), text: cell.textContent.trim() };
  });
  const figures = keyed.some((each) => each.number !== null);
  keyed.sort((one, other) => {
    if (!figures) return ascending ? one.text.localeCompare(other.text) : other.text.localeCompare(one.text);
    // What was not measured stands last in both directions.
    if (one.number === null || other.number === null) return (one.number === null) - (other.number === null);
    return ascending ? one.number - other.number : other.number - one.number;
  });
  body.append(...keyed.map((each) => each.row));
}

for (const figure of document.querySelectorAll("figure")) {
  const chart = figure.querySelector("svg.chart");
  for (const button of figure.querySelectorAll(".legend button")) {
    const light = (on) => () => {
      chart.classList.toggle("dimmed", on);
      for (const series of chart.querySelectorAll(".series")) {
        series.classList.toggle("lit", on && series.dataset.series === button.dataset.series);
      }
    };
    button.addEventListener("mouseenter", light(true));
    button.addEventListener("focus", light(true));
    button.addEventListener("mouseleave", light(false));
    button.addEventListener("blur", light(false));
  }
}
