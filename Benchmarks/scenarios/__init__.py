"""What is measured; each scenario has `run`, which returns its figures, and `show`, which makes Markdown of them."""
