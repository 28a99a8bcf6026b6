"""Write records as the files that other programs read: mail as mbox, calendars as iCalendar, contacts as vCard."""
