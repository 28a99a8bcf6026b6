"""Messages of chat programs: exports of Slack, WhatsApp, Telegram and Signal."""
