"""What a run leaves behind: lines, films, snapshots, checkpoints, and how they are written."""
