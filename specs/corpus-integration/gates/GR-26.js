// The table of chapters names each chapter.
[...document.querySelectorAll('.chapter')].every(c => document.querySelector('.toc a[href="#' + c.id + '"]'))
