// None of the words that the world does not know.
!/\b(seamless|powerful|blazing|effortless)/i.test(document.body.innerText)
