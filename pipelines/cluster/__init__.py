"""What only clusters and remote stores need: a run of the local runner on local files imports nothing from here."""
