"""What both Beam jobs share: tasks that run once, the journal of finished tasks, the runner, progress."""
