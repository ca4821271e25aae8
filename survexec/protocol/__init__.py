"""What happened, and could it be executed: logs in, judged trajectories out."""
