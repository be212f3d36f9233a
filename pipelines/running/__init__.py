"""What every Beam job here needs: each task done once, notes of what is done, the runner, progress."""
