"""Events of calendars: iCalendar files."""
