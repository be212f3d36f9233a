"""What only clusters and remote stores need. The local runner on local files imports nothing from here."""
