"""An invented person's year, to show the program with: mail, calendar, chat, bank and notes that belong together."""
