"""One module a command; each reads as the flow of its command. Printing and progress live here, work does not."""
