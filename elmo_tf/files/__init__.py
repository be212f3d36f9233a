"""Files and folders on this machine: written whole or not at all, downloaded, with progress shown."""
