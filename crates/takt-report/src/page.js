'use strict';
// Filters the lists of missed deadlines by app.
for (const select of document.querySelectorAll('select[data-filter]')) {
  const rows = document.querySelectorAll(`#${select.dataset.filter} tbody tr`);
  const count = select.closest('p').querySelector('span');
  select.addEventListener('change', () => {
    let shown = 0;
    for (const row of rows) {
      row.hidden = select.value !== '' && row.dataset.app !== select.value;
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${rows.length} listed`;
  });
}
