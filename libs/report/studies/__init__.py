"""What a study says, composed once: terminal, page and file only show it."""
