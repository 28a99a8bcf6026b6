"""Mail: mailboxes of files (mbox, Maildir, single messages) and of IMAP accounts."""
